#!/usr/bin/env bash
# command_line_test.sh PROGRAM: exit status, output and error line of the program, as a user meets
# them. Exits 77 (skipped) where the program has no device to run on.
set -euo pipefail

program=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
failures=0

complain() {
  echo "FAILED: convladder $arguments: $1"
  cat out err
  failures=$((failures + 1))
}

# expect STATUS PATTERN ARGUMENT...: the status, and a line of stdout or stderr. What goes wrong
# must leave exactly one line on stderr, what goes right none. A hang is status 124.
expect() {
  local status=0 wanted=$1 pattern=$2 lines
  shift 2
  arguments=$*
  timeout 300 "$program" "$@" >out 2>err || status=$?
  lines=$(grep -c . err || true)
  [[ $status -eq $wanted ]] || complain "status $status, not $wanted"
  grep -q -- "$pattern" out err || complain "'$pattern' is nowhere in its output"
  case $pattern in
    '^convladder: error: '* | '^convladder: warning: '*) [[ $lines -eq 1 ]] || complain "$lines lines on stderr, not 1" ;;
    *) [[ $lines -eq 0 ]] || complain "something on stderr" ;;
  esac
}

# expect_lost STREAM: with nowhere to print to, no success.
expect_lost() {
  local status=0
  arguments="--help >$1"
  : >out
  eval '"$program" --help 2>err >'"$1" || status=$?
  [[ $status -eq 1 ]] || complain "status $status, not 1"
  grep -q "$e"'standard output can.t be written: .' err || complain "no reason"
}

e='^convladder: error: '

expect 0 '^usage: ' --help
expect 0 '^usage: ' -h
expect 0 '^usage: convladder run' run -h
[[ ! -e /dev/full ]] || expect_lost /dev/full
expect_lost '&-'
expect 0 '--max-gmac' check --help
expect 0 '--once' run --help
expect 2 "$e"'unknown command .climb.' climb
expect 2 "$e".*--speed run --speed 3
expect 2 "$e"'--shape is given twice' check --shape a --shape b
expect 2 "$e".*--json check --json ''
expect 2 "$e"'--json can.t be given with --once' run --once --json x.json
expect 2 "$e"'--output and --json name the same file: y' run --json ./y --output y
expect 2 "$e"'--json and --shapes name the same file: p.csv' check --shapes p.csv --json p.csv
expect 2 "$e"'--report is for the photograph' run --n 1 --report x
expect 2 "$e"'--n = .99999999999999999999.' check --n 99999999999999999999
expect 2 "$e"'--bias = 2: must be at most 1' check --bias 2
expect 2 "$e"'--offset = .4.: must be 0 to 3' check --offset 4
expect 2 "$e"'--offset = .1,2,3.: must be 0 to 3' check --offset 1,2,3
expect 2 "$e"'--shape can.t be given with --fuzz' check --fuzz 3 --shape alexnet_conv1
expect 2 "$e"'--fuzz = 0: must be at least 1' check --fuzz 0
expect 2 "$e"'--seconds is for --fuzz' check --seconds 3
expect 2 "$e"'stage .00_none. is unknown' check --stage 00_none

# From here on a device is needed.
if ! "$program" check --n 1 >out 2>err && grep -q 'no GPU' err; then
  cat err
  [[ $failures -eq 0 ]] && exit 77
  exit 1
fi

plain=(--n 2 --h 9 --w 8 --s 2 --stride_w 2 --pad_h 1)
small=("${plain[@]}" --c 3 --k 5 --r 3)
grouped=("${plain[@]}" --c 6 --k 15 --r 3 --groups 3)

expect 0 ' passed, 0 failed, 0 rejected, 0 skipped' check "${small[@]}" --json records.json
grep -q '"version":1,.*"status":"pass"' records.json || complain "no pass in records.json"
expect 0 ' passed, 0 failed' check "${small[@]}" --offset 3 --bias 0 --seed 7
expect 1 "$e"'nowhere/records.json.*: No such file' check "${small[@]}" --json nowhere/records.json
expect 1 "$e"'nowhere/run.json.*: No such file' run "${small[@]}" --json nowhere/run.json
grep -q 01_naive out && complain "measured first"
expect 1 "$e"'nowhere/y.npy.*: No such file' run "${small[@]}" --output nowhere/y.npy
expect 2 "$e"'problem .alexnet_conv9. is unknown' check --shape alexnet_conv9
expect 1 "$e"'stride_h = 0: ' check "${small[@]}" --stride_h 0
expect 1 "$e"'groups = 3: must divide k = 5' check "${small[@]}" --groups 3
expect 0 ' passed, 0 failed' check "${grouped[@]}" --offset 1
expect 1 "$e"'r = 12: ' check "${plain[@]}" --c 3 --k 5 --r 12
expect 1 "$e"'none.csv: ' check --shapes none.csv
touch taken
expect 1 "$e"'taken: can.t be made: ' run --report taken
grep -q 'output 55x55' out && complain "began"
mkfifo pipe
expect 1 "$e"'pipe: can.t be read' run "${small[@]}" --input pipe
ln -s target.json link.json
expect 0 ' passed, 0 failed' check "${small[@]}" --json link.json
[[ -L link.json && -s target.json ]] || complain "the link was replaced"
before=$failures
(
  ulimit -f 1  # a KiB
  expect 1 "$e"'huge.npy: can.t be written: File too large' \
    run "${small[@]}" --output huge.npy --stage 01_naive
  exit $((failures - before))
) || failures=$((failures + 1))
[[ -z $(find . -name 'huge*') ]] || complain "something of huge.npy is left"
expect 0 '1 random problems, ' check --fuzz 3 --seconds 1e-12

printf 'name,n,c,h,w,k,r,s,groups,comment\nright,1,2,5,6,4,2,2,2,\nwrong,1,2,5,6,3,2,2,2,\n' >two.csv
expect 0 'right  *pass' check --shapes two.csv
expect 0 'wrong  *rejected .*groups = 2' check --shapes two.csv
expect 1 "$e"'groups = 2: ' check --shapes two.csv --shape wrong
printf 'n,c,h,w,k,r,s,stride\n1,1,4,4,1,1,1,2\n' >stride.csv
expect 0 '^convladder: warning: stride.csv:1:15: column .stride. is ignored' check --shapes stride.csv
printf 'name,n,c,h,w,k,r,s\nlarge,1,64,56,56,64,3,3\n' >large.csv
if [[ $("$program" --help) == *'backend: sim'* ]]; then
  expect 0 'cut down to .* (--max-gmac 0.03)' check --shapes large.csv
  expect 0 '^1 of 1 problems were cut down, ' check --shapes large.csv
  # A BLAS with no room for its buffers. (A program with sanitizers can't begin under such a limit.)
  if (ulimit -v 300000 && "$program" --help >out 2>&1); then
    export OPENBLAS_NUM_THREADS=2 CONVLADDER_SIM_THREADS=2
    status=0
    (ulimit -v 300000 && timeout 60 "$program" check "${small[@]}" --stage 02_im2col_gemm) \
      >out 2>err || status=$?
    unset OPENBLAS_NUM_THREADS CONVLADDER_SIM_THREADS
    arguments="under a limit of memory"
    [[ $status -le 1 ]] || complain "status $status, not 1"  # 0 on a single core: there is room
    [[ $status -ne 1 ]] || grep -q "$e.*cublas.*: out of memory" err || complain "no reason"
  fi
fi
expect 0 'large  *pass' check --shapes large.csv --max-gmac 0.01 --stage 01_naive

expect 0 'NOT checked' run "${small[@]}" --once
expect 0 '  pass$' run "${small[@]}" --json run.json --output y.npy
[[ -s y.npy ]] || complain "y.npy is missing"
grep -q '"version": 1' run.json || complain "run.json is missing"
expect 1 "$e"'y.npy: shape is \[2,5,9,4\], the input must be \[2,3,9,8\]' \
  run "${small[@]}" --input y.npy
# Groups: the output of one run is an input of the next, in which a filter has a third of its channels.
expect 0 'k15 3x2 .* groups 3, bias' run "${grouped[@]}" --output y.npy
expect 1 "$e"'y.npy: shape is \[2,15,9,4\], the filters must be \[10,3,1,1\]' \
  run --n 2 --c 15 --h 9 --w 4 --k 10 --groups 5 --input y.npy --filters y.npy
expect 0 '  pass$' run --n 2 --c 15 --h 9 --w 4 --k 10 --groups 5 --input y.npy
expect 0 '  pass$' run --batch 1 --report report
[[ -s report/run.json && $(find report -name 'f*.p*' | wc -l) -eq 2 ]] || complain "no report"

echo "$failures failures"
[[ $failures -eq 0 ]]

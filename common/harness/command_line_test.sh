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
# must leave exactly one line on stderr, what goes right none.
expect() {
  local status=0 wanted=$1 pattern=$2 lines
  shift 2
  arguments=$*
  "$program" "$@" >out 2>err || status=$?
  lines=$(grep -c . err || true)
  [[ $status -eq $wanted ]] || complain "status $status, not $wanted"
  grep -q -- "$pattern" out err || complain "'$pattern' is nowhere in its output"
  case $pattern in
    '^convladder: error: '*) [[ $lines -eq 1 ]] || complain "$lines lines on stderr, not 1" ;;
    *) [[ $lines -eq 0 ]] || complain "something on stderr" ;;
  esac
}

e='^convladder: error: '

expect 0 '^usage: ' --help
expect 0 '--max-gmac' check --help
expect 0 '--once' run --help
expect 2 "$e"'unknown command .climb.' climb
expect 2 "$e"'unknown option .--speed.' run --speed 3
expect 2 "$e"'unexpected argument .fast.' check fast
expect 2 "$e"'--n needs a value' check --n
expect 2 "$e"'--relu takes no value' check --relu=1
expect 2 "$e"'--n = .2x.: must be a whole number' check --n 2x
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

small=(--n 2 --c 3 --h 9 --w 8 --k 5 --r 3 --s 2 --stride_w 2 --pad_h 1)

expect 0 ' passed, 0 failed, 0 rejected, 0 skipped' check "${small[@]}" --json records.json
grep -q '"version": 1, .*"status": "pass"' records.json || complain "no pass in records.json"
expect 0 ' passed, 0 failed' check "${small[@]}" --offset 3 --bias 0 --seed 7
expect 1 "$e"'nowhere/records.json.*: No such file' check "${small[@]}" --json nowhere/records.json
expect 1 "$e"'nowhere/run.json.*: No such file' run "${small[@]}" --json nowhere/run.json
grep -q 01_naive out && complain "measured first"
expect 1 "$e"'nowhere/y.npy.*: No such file' run "${small[@]}" --output nowhere/y.npy
expect 2 "$e"'problem .alexnet_conv9. is unknown' check --shape alexnet_conv9
expect 1 "$e"'stride_h = 0: ' check "${small[@]}" --stride_h 0
expect 1 "$e"'groups = 3: ' check "${small[@]}" --groups 3
expect 1 "$e"'r = 12: ' check "${small[@]}" --r 12
expect 1 "$e"'none.csv: ' check --shapes none.csv

printf 'name,n,c,h,w,k,r,s,groups,comment\nright,1,2,5,6,3,2,2,1,\nwrong,1,2,5,6,3,2,2,2,\n' >two.csv
expect 0 'right  *pass' check --shapes two.csv
expect 0 'wrong  *rejected .*groups = 2' check --shapes two.csv
expect 1 "$e"'groups = 2: ' check --shapes two.csv --shape wrong
printf 'n,c,h,w,k,r,s\n1,1,x,4,1,1,1\n' >malformed.csv
expect 1 "$e"'malformed.csv:2:5: ' check --shapes malformed.csv

expect 0 'NOT checked' run "${small[@]}" --once
expect 0 '  pass$' run "${small[@]}" --json run.json --output y.npy
grep -q '"version": 1' run.json && [[ -s y.npy ]] || complain "run.json or y.npy is missing"
expect 1 "$e"'y.npy: shape is \[2,5,9,4\], the input must be \[2,3,9,8\]' \
  run "${small[@]}" --input y.npy
expect 0 '  pass$' run --batch 1 --report report
[[ -s report/run.json && $(find report -name 'f*.p*' | wc -l) -eq 2 ]] || complain "no report"

echo "$failures failures"
[[ $failures -eq 0 ]]

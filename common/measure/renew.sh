#!/usr/bin/env bash
# renew.sh [--minutes N] [--list]: without a GPU makes anew what the simulator counts, the page and the generated
# parts of the texts. On a machine with a GPU, nvcc and Nsight Compute makes anew all else that lies
# in docs/results, and the readings of common/tests/data. Each result takes its place when its step has
# ended; a step is done as long as the kernels are the same, so that a run that was cut off goes on with
# the next call. No step begins after N minutes (default 25). --list says which steps there are, and
# which are done. Status 1 if a step failed. docs/maintaining.md has more.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cd "$root"

say() { printf 'renew: %s\n' "$*" >&2; }
die() { say "error: $1"; exit "${2:-1}"; }

minutes=25 list=""
while [[ $# -gt 0 ]]; do
  case $1 in
    --minutes) minutes=${2:-}; shift ;;
    --list) list=yes ;;
    *) die "there is no '$1', only --minutes N and --list" 2 ;;
  esac
  shift || true
done
[[ $minutes =~ ^[0-9]+$ ]] || die "--minutes = '$minutes': must be a number" 2

gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || true
if [[ -z $gpu && -z $list ]]; then
  say "no GPU here: what the simulator counts, and the texts"
  ./ladder --backend sim profile --json docs/results/profile_sim.json --trace build/report/trace.json
  python3 -B -m common.measure.readings counts
  exec ./ladder report --docs --trace build/report/trace.json
fi
name=${gpu:-NVIDIA H200}  # NVIDIA H200: h200
name=$(sed -E 's/^nvidia //; s/[^a-z0-9_]+/_/g' <<<"${name,,}")
nvcc=$(python3 -B -c 'from common.command import machine; print(machine.nvcc() or "")')
PATH=$PATH${nvcc:+:${nvcc%/*}}  # where NVIDIA's other tools are
digest=$(python3 -B -c 'from common.show import files; print(files.kernels_digest())')
done_steps=build/renew/$name-$digest failures=0 left=()
mkdir -p "$done_steps"
trap 'exit 130' INT  # a step that is interrupted ends as if it had failed

# ---- Steps ----

# step NAME COMMAND...: unless it is done, or there is no time left.
step() {
  local status=0 begin=$SECONDS
  if [[ -n $list ]]; then
    printf '%-8s%s\n' "$([[ ! -e $done_steps/$1 ]] || echo "done")" "$1"
  elif [[ -e $done_steps/$1 ]]; then
    say "$1: done before"
  elif [[ $((SECONDS / 60)) -ge $minutes ]]; then
    left+=("$1")
  else
    say "$1, after $((SECONDS / 60)) minutes"
    "${@:2}" || status=$?
    if [[ $status -eq 0 ]]; then
      touch "$done_steps/$1"
      say "$1: done, after $((SECONDS - begin)) s"
    elif [[ $status -eq $CUT_OFF || $status -eq $KILLED ]]; then
      left+=("$1")
    else
      say "$1: FAILED, status $status"
      failures=$((failures + 1))
    fi
  fi
}

# again NAME COMMAND...: a step that is done only if its result says so.
again() {
  rm -f "$done_steps/$1"
  step "$@"
}

# into FILE COMMAND...: what the command prints becomes the file, if it succeeds.
into() {
  "${@:2}" >"build/renew/output" && mv build/renew/output "$1"
}

# json FILE PATTERN COMMAND...: what the command writes to --json becomes the file, if the pattern is in it.
json() {
  rm -f build/renew/records.json
  "${@:3}" --json "$root/build/renew/records.json" && grep -q "$2" build/renew/records.json &&
    mv build/renew/records.json "$1"
}

# campaign WHAT COMMAND...: the last line that it prints becomes its row of campaigns.csv, whatever it says.
campaign() {
  local status=0 said file=docs/results/campaigns.csv
  "${@:2}" | tee build/renew/output || status=$?
  said=$(tail -n 1 build/renew/output)
  {
    head -n 1 $file
    tail -n +2 $file | awk -F, -v what="$1" -v device="$gpu" '$1 != what || $3 != device'
    printf '%s,%s,%s,%s,"%s"\n' "$1" "${*:2}" "$gpu" "$digest" "${said//\"/\'}"
  } >build/renew/rows && mv build/renew/rows $file
  return "$status"
}

# in_time COMMAND...: for a command that keeps what it has when it is cut off, and cleans up behind itself.
CUT_OFF=124 KILLED=137  # timeout's status then
in_time() {
  timeout --foreground --kill-after=60 "$((minutes * 60 - SECONDS))" "$@"
}

ladder=(./ladder --backend gpu)
jobs=$(nproc)
((jobs <= 16)) || jobs=16  # each has its own part of the GPU's memory

step build "${ladder[@]}" build gpu all
step test campaign tests "${ladder[@]}" test  # before a result is new, and a text is older
step bench json "docs/results/bench_$name.json" '"convladder bench"' \
  "${ladder[@]}" bench --bias 1 --repeats 5
step layers json "docs/results/layers_$name.json" '"convladder bench"' \
  "${ladder[@]}" bench --shapes common/layers.csv --repeats 3 --stage={05,06,07,08,09,10,11,12,13,16,auto}
# Once it is there its rates may be the highest of several runs: none of them may be passed.
[[ -e common/machines/$name.json ]] ||
  again machine "${ladder[@]}" bench --machine "common/machines/$name.json"
step profile json "docs/results/profile_$name.json" '"source": "ncu"' "${ladder[@]}" profile
step pitfall_times into "docs/results/pitfall_times_$name.txt" \
  build/gpu/bin/pitfalls_test --gtest_brief=1 --gtest_filter='PitfallTimes.*'
step fuzz campaign "random problems" "${ladder[@]}" check --fuzz 2048 --seed 1
step sanitize campaign compute-sanitizer "${ladder[@]}" sanitize --jobs "$jobs" --max-gmac 0.00002
step readings_stages python3 -B -m common.measure.readings stages
step experiments in_time ./ladder --backend gpu variant --kind experiment \
  --repeats 7 --json "docs/results/experiments_$name.json"
step exercises "${ladder[@]}" exercise --measure
# These readings are of a separate program, which no stage changes: they are made once for each text of it.
grep -q "of $(sha256sum <common/measure/bank_patterns.cu | cut -d ' ' -f 1)" common/tests/data/ncu_patterns.csv ||
  again readings_patterns python3 -B -m common.measure.readings patterns

[[ -z $list ]] || exit 0
python3 -B -m common.measure.timed_layers "docs/results/layers_$name.json" || failures=$((failures + 1))
./ladder report --docs || failures=$((failures + 1))
[[ ${#left[@]} -eq 0 ]] || say "left for the next call, after $minutes minutes: ${left[*]}"
say "$failures failed; see git diff"
[[ $failures -eq 0 ]]

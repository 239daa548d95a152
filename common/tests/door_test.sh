#!/usr/bin/env bash
# door_test.sh LADDER: ./ladder's answers to words that it can't use. Nothing is installed or built.
set -euo pipefail

ladder=$(realpath "$1")
failures=0

# expect STATUS PATTERN ARGUMENT...: the status, and a line of what is printed. An error is one line.
expect() {
  local status=0 wanted=$1 pattern=$2 text
  shift 2
  text=$("$ladder" "$@" 2>&1) || status=$?
  [[ $status -eq $wanted ]] && grep -qe "$pattern" <<<"$text" &&
    [[ $status -eq 0 || $(wc -l <<<"$text") -eq 1 ]] && return
  printf 'FAILED: ./ladder %s: status %s, %s wanted, with %s in:\n%s\n' \
    "$*" "$status" "$wanted" "'$pattern'" "$text"
  failures=$((failures + 1))
}

e='^ladder: error: '

expect 0 '^usage: '
expect 2 "$e"'unknown command .climb.' climb
expect 2 "$e"'--backend needs a value' run --backend
expect 2 "$e"'--backend = .tpu.: must be gpu or sim' run --backend tpu
expect 2 "$e"'test takes no argument .01_naive.' test 01_naive
expect 2 "$e"'--stage needs a value' test --stage
expect 2 "$e"'--minutes = .few.: must be a number' test --all --minutes few
expect 2 "$e"'--minutes is for --all' test --minutes 3
expect 2 "$e"'stage .naive. is unknown; there are 01_naive ' test --stage naive
expect 2 "$e"'stage .06_none. is unknown' test --stage 01_naive --stage=06_none
expect 2 "$e"'stage .01_naive/\.\./common. is unknown' test --stage 01_naive/../common
expect 2 "$e"'build .fast.: the presets are gpu, sim, sim-count and sim-asan' build fast all
expect 2 "$e"'build sim: name a program' build sim
expect 2 "$e"'--show and --trace are for the simulator' profile --show --backend gpu
expect 2 "$e"'bugs takes no argument .03.' bugs 03
expect 2 "$e"'doctor takes no argument .quick.' doctor quick
while read -r command; do
  expect 0 "^  $command " help
done < <(sed -n 's/^cmd_\([a-z]*\)() {$/\1/p' "$ladder")

echo "$failures failures"
[[ $failures -eq 0 ]]

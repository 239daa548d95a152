#!/usr/bin/env bash
# run_test.sh: how common/tests/run.sh counts, with reports made up in the form of CTest's and
# GoogleTest's.
set -euo pipefail

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
die() { echo "died: $*"; exit 3; }
# shellcheck source=common/tests/run.sh
source "$(dirname "${BASH_SOURCE[0]}")/run.sh"
mkdir -p "$root/build/sim/test-results"
wrong=0

# entries STATUS NAME [STATUS NAME...]: CTest's report.
entries() {
  echo '<testsuite name="Linux-c++">'
  while [[ $# -gt 0 ]]; do
    printf '\t<testcase name="%s" classname="%s" time="0.1" status="%s">\n\t</testcase>\n' "$2" "$2" "$1"
    shift 2
  done
  echo '</testsuite>'
} >"$root/build/sim/tests.xml"

# cases NAME KIND...: the report of the suite NAME.
cases() {
  local kind
  for kind in "${@:2}"; do
    case $kind in
      passed) echo '<testcase name="a" status="run" result="completed" />' ;;
      failed) printf '<testcase name="a" status="run">\n<failure message="1"/>\n<failure message="2"/>\n' ;;
      skipped) printf '<testcase name="a" status="run" result="skipped">\n<skipped message="no"/>\n' ;;
      disabled) echo '<testcase name="a" status="notrun" result="suppressed" />' ;;
    esac
  done >"$root/build/sim/test-results/$1.xml"
}

expect() {  # expect WHAT PASSED FAILED SKIPPED
  passed=0 failures=0 skipped=0
  count_results sim
  [[ "$passed $failures $skipped" == "$2 $3 $4" ]] && return
  echo "FAILED: $1: $passed passed, $failures failed, $skipped skipped; $2, $3 and $4 expected"
  wrong=$((wrong + 1))
}

entries run script fail other_script notrun no_program disabled no_python
expect "entries without a report" 1 1 2

cases suite passed failed passed skipped disabled
entries fail suite run script
expect "the cases of a suite" 3 1 2

cases suite passed passed
expect "a failure behind the report" 3 1 0

cases suite
if (expect "an empty suite" 0 0 0) >/dev/null; then
  echo "FAILED: a suite without a test does not count as an error"
  wrong=$((wrong + 1))
fi

echo "$wrong wrong"
[[ $wrong -eq 0 ]]

# shellcheck shell=bash
# `./ladder test` and `./ladder bugs`: which tests they run, by CTest's labels. Sourced by ./ladder.

passed=0 failures=0 skipped=0

build_tests() {  # build_tests PRESET TARGET...
  configure "$1" test
  demand "$1" GoogleTest libgtest-dev
  build "$1" test "${@:2}"
}

# Adds up the cases in the reports that suites have left, and the CTest entries that leave none (a
# script is one test, and so is a program that did not get as far as its report).
count_results() {  # count_results PRESET
  local folder=$root/build/$1/test-results name status report cases bad left_out
  while IFS=$'\t' read -r name status; do
    report=$folder/$name.xml
    if [[ -e $report ]]; then
      cases=$(grep -c '<testcase ' "$report") || true
      bad=$(awk '/<testcase /{open = 1} /<failure/ && open {n++; open = 0} END{print n + 0}' "$report")
      left_out=$(grep -cE '<skipped|status="notrun"' "$report") || true
      [[ $cases -gt 0 ]] || die "build/$1: the suite $name has found no test"
      # A suite that failed outside its cases, after its report.
      [[ $status == run || $bad -gt 0 ]] || bad=1 cases=$((cases + 1))
    else
      cases=1 bad=0 left_out=0
      case $status in
        run) ;;
        notrun | disabled) left_out=1 ;;
        *) bad=1 ;;
      esac
    fi
    passed=$((passed + cases - bad - left_out))
    failures=$((failures + bad))
    skipped=$((skipped + left_out))
  done < <(sed -n 's/.*<testcase name="\([^"]*\)".* status="\([a-z]*\)".*/\1\t\2/p' "$root/build/$1/tests.xml")
}

sum_up() {
  echo "$passed passed, $failures failed, $skipped skipped"
  [[ $failures -eq 0 && $passed -gt 0 ]]
}

# Runs CTest and adds up what it has found. A failure is shown at once, a suite's end with one line.
run_tests() {  # run_tests PRESET [CTEST OPTION...]
  local report=$root/build/$1/tests.xml
  say "testing build/$1"
  rm -f "$report"
  (cd "$root" && "$(cached "$1" CMAKE_CTEST_COMMAND)" --preset "$1" --parallel "$(nproc)" \
    --output-junit "$report" "${@:2}") |
    { grep --line-buffered -vE '^ +Start +[0-9]+: |^Label Time Summary|sec\*proc|^Test project|^$' || true; } || true
  [[ -e $report ]] || die "ctest --preset $1 gave no results"
  count_results "$1"
}

# What would have run on a GPU counts as skipped: the cases of the stages that ran in the simulator.
skip_gpu_tests() {
  local count
  count=$(cat "$root"/build/sim/test-results/[0-9][0-9]_*.xml | grep -c '<testcase ') || true
  say "no GPU with nvcc here: the $count tests of that backend are skipped"
  skipped=$((skipped + count))
}

# Names the results of long runs that are of other kernels than those here.
warn_of_old_records() {
  local digest old
  digest=$("$cmake" -D "ROOT=$root" -P "$root/common/command/cmake/KernelsDigest.cmake" 2>&1)
  old=$(awk -F, -v digest="$digest" 'NR > 1 && $4 != "-" && $4 != digest { print $1 " (" $3 ")" }' \
    "$root/docs/results/campaigns.csv" | paste -sd, | sed 's/,/, /g')
  [[ -z $old ]] || say "warning: docs/results/campaigns.csv: of other kernels than those here" \
    "($digest): $old"
}

# ---- What is thorough, in parts ----

planted_bugs() {
  run_tests sim --tests-regex '^variants.thorough$'
  run_tests sim-count --tests-regex '^variants.thorough$'
}

races_in_layers() { run_tests sim-count --tests-regex '^count\..*\.thorough$'; }

all_exercises() { run_tests sim-count --tests-regex '^exercises_judged\.thorough$'; }

sanitized_code() {
  build_tests sim-asan tests
  run_tests sim-asan --label-exclude '^thorough$'
}

thorough_simulator() {
  build_tests sim all
  run_tests sim --label-regex '^thorough$' --exclude-regex '^variants'
}

thorough_gpu() {
  build_tests gpu all
  run_tests gpu --label-regex '^thorough$'
}

# Parts that would begin after so many minutes are left out; none if that is empty.
thorough_suites() {  # thorough_suites MINUTES
  local part parts=()
  [[ $backend == gpu ]] || parts+=(planted_bugs races_in_layers all_exercises sanitized_code thorough_simulator)
  [[ $chosen != gpu ]] || parts+=(thorough_gpu)
  for part in "${parts[@]}"; do
    if [[ -n $1 && $((SECONDS / 60)) -ge $1 ]]; then
      say "left out after $1 minutes: ${part//_/ }"
    else
      "$part"
    fi
  done
}

# The tests that options choose, on what backends there are: those of targets, and those of the
# target counting in the simulator that counts, which finds races and stray accesses.
suites() {
  if [[ $backend != gpu ]]; then
    build_tests sim "${targets[@]}"
    run_tests sim "${options[@]}"
    build_tests sim-count "${counting[@]}"
    run_tests sim-count --label-regex '^(counting|bugs)$' "${options[@]}"
  fi
  if [[ $chosen == gpu ]]; then
    build_tests gpu "${targets[@]}"
    run_tests gpu "${options[@]}"
  elif [[ -z $backend ]]; then
    skip_gpu_tests
  fi
}

# Dies unless a folder of that name holds a stage.
require_stage() {
  local known=("$root"/[0-9][0-9]_*/CMakeLists.txt)
  known=("${known[@]%/CMakeLists.txt}")
  known=("${known[@]##*/}")
  printf '%s\n' "${known[@]}" | grep -qxF -e "$1" ||
    die_usage "stage '$1' is unknown; there are ${known[*]}"
}

cmd_test() {  # cmd_test [--all [--minutes N]] [--stage NAME]...
  local all="" minutes="" stages=() names
  local targets=(tests) counting=(counting) options=(--label-exclude '^thorough$')
  choose_backend
  while [[ $# -gt 0 ]]; do
    case $1 in
      --all) all=--all ;;
      --stage | --minutes)
        [[ $# -ge 2 ]] || die_usage "$1 needs a value"
        if [[ $1 == --stage ]]; then
          stages+=("$2")
        else
          [[ $2 =~ ^[0-9]+$ ]] || die_usage "--minutes = '$2': must be a number"
          minutes=$2
        fi
        shift
        ;;
      --stage=*) stages+=("${1#*=}") ;;
      *) die_usage "test takes no argument '$1', only --all, --minutes N and --stage NAME" ;;
    esac
    [[ ${#stages[@]} -eq 0 ]] || require_stage "${stages[-1]}"
    shift
  done
  [[ -z $minutes || (-n $all && ${#stages[@]} -eq 0) ]] || die_usage "--minutes is for --all"
  rm -rf "$root"/build/{sim,sim-count,sim-asan,gpu}/test-results
  if [[ ${#stages[@]} -gt 0 ]]; then
    names="($(IFS='|' && echo "${stages[*]}"))"
    [[ -z $all ]] || names="$names(\.readings)?(\.thorough|\.fuzz)?"
    targets=("${stages[@]}" "${stages[@]/#/test_}") counting=(stage_counts_tests convladder)
    options=(--tests-regex "^(count\.)?$names\$")
  fi
  suites
  if [[ -n $all && ${#stages[@]} -eq 0 ]]; then
    thorough_suites "$minutes"
    warn_of_old_records
  elif [[ ${#stages[@]} -eq 0 ]]; then
    say "left out, and in ./ladder test --all: every layout of the tensors, large layers, limits" \
      "beyond 16 bits, the host's code under sanitizers, the other planted bugs, the other" \
      "exercises, fuzzers"
  fi
  sum_up
}

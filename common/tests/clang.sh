#!/usr/bin/env bash
# The simulator compiled by clang++, in build/clang: stage 01's suite; and on Linux the races and stray accesses that
# bug_finding_test.cu plants, in build/clang-count. What it needs must be there: ./ladder doctor names it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export CXX=clang++
jobs=$(getconf _NPROCESSORS_ONLN)

cmake --preset sim -B build/clang
cmake --build build/clang -j "$jobs" --target 01_naive test_01_naive
build/clang/bin/01_naive run
ctest --test-dir build/clang -R '^01_naive$' --no-tests=error
[[ $(uname) == Linux ]] || exit 0
cmake --preset sim-count -B build/clang-count -D CMAKE_CXX_COMPILER=clang++
cmake --build build/clang-count -j "$jobs" --target counting_tests
build/clang-count/bin/counting_tests --gtest_filter='BugFinding.*'

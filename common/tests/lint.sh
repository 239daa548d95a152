#!/usr/bin/env bash
# lint.sh shellcheck|ruff|clang-format|clang-tidy [BUILD]: that tool on all that is kept here of its language.
# Status 77 without the tool, or without version 14 of LLVM's. clang-tidy needs BUILD/compile_commands.json. What each looks for, and which
# exceptions there are: .clang-format, .clang-tidy, .ruff.toml.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
type -P "$1" >/dev/null || { echo "no $1 in PATH"; exit 77; }
kept() { git ls-files -- "$@"; }
kept ladder >/dev/null 2>&1 || { echo "not a checkout of git's"; exit 77; }
# Other versions format otherwise, and find what this one doesn't.
[[ $1 != clang-* || $("$1" --version) == *"version 14."* ]] || { echo "$1 is not of version 14"; exit 77; }

case $1 in
  shellcheck)
    mapfile -t files < <(kept '*.sh')
    shellcheck ladder .ci/run "${files[@]}"
    ;;
  ruff) ruff check --quiet . ;;
  clang-format)
    mapfile -t files < <(kept '*.cpp' '*.h' '*.cu' ':!*/solution.cu')  # those are parts of files
    clang-format --dry-run --Werror "${files[@]}"
    ;;
  clang-tidy)
    kept 'common/*.cpp' ':!common/tests' | while read -r file; do  # what the build compiles
      ! grep -qF "\"$PWD/$file\"" "$2/compile_commands.json" || printf '%s\0' "$file"
    done | xargs -0 -n 4 -P "$(nproc)" clang-tidy -p "$2" --quiet 2>/dev/null
    ;;
esac

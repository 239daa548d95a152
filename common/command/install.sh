# shellcheck shell=bash
# A compiler, CMake and make, without which there is no configuring; and installing, with apt-get,
# these and what configuring finds missing. Sourced by ./ladder.

least_cmake=3.25

reason=""  # why it could not be installed
OFFLINE='failure resolving\|not resolve\|not connect\|initiate the connection\|unreachable\|timed out'

# Prints the command prefix that makes apt-get root; fails where there is none.
root_prefix() {
  if [[ $EUID -eq 0 ]]; then
    echo env
  elif type -P sudo >/dev/null && sudo -n true 2>/dev/null; then
    echo "sudo -n env"
  elif type -P sudo >/dev/null && [[ -t 0 ]]; then
    echo "sudo env"
  else
    return 1
  fi
}

# Appends to $log. New machines install something of their own first: waits for their lock.
apt() {  # apt PREFIX WORD...
  local said waiting="" deadline=$((SECONDS + 900))
  while true; do
    # shellcheck disable=SC2086  # the prefix is several words
    said=$($1 LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -y --no-install-recommends \
      -o DPkg::Lock::Timeout=5 -o Acquire::Retries=1 "${@:2}" 2>&1 </dev/null) &&
      echo "$said" >>"$log" && return
    echo "$said" >>"$log"
    grep -qE '^E: (Could not get lock|Unable to (lock|acquire))' <<<"$said" || return 1
    [[ $SECONDS -lt $deadline ]] || return 1
    [[ -n $waiting ]] || say "apt is busy (another program holds its lock): waiting for it"
    waiting=yes
    sleep 2
  done
}

# Whatever of them there is; fails, with the reason in $reason, if that is not all.
install() {  # install PACKAGE...
  local prefix package log=$root/build/apt.log failed=0
  reason="there is no apt-get" && type -P apt-get >/dev/null || return 1
  reason="installing needs root or sudo" && prefix=$(root_prefix) || return 1
  own_folder .
  say "installing with apt-get: $*"
  step="installing"
  : >"$log"
  # Interrupted while it downloads, not while it unpacks.
  if apt "$prefix" update && apt "$prefix" install --download-only "$@"; then
    (trap '' INT && apt "$prefix" install "$@") || failed=1
  else
    failed=1
    for package in $([[ $# -eq 1 ]] || grep -q "$OFFLINE" "$log" || printf '%s\n' "$@"); do
      (trap '' INT && apt "$prefix" install "$package") || true  # each for itself
    done
  fi
  step="" reason=""
  [[ $failed -ne 0 ]] || return 0
  reason="apt-get says: $(grep -m 1 '^E: ' "$log" || tail -n 1 "$log")"
  ! grep -q "$OFFLINE" "$log" || reason="apt-get reaches no package server (no network?)"
  return 1
}

cmake="" lacking=()

# The first in PATH that is new enough: an old one may stand before it.
find_cmake() {
  local candidate version
  while read -r candidate; do
    version=$("$candidate" --version 2>/dev/null | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p') || continue
    if [[ -n $version ]] && printf '%s\n' "$least_cmake" "$version" | sort -VC; then
      cmake=$candidate
      return
    fi
  done < <(type -ap cmake; ls /usr/bin/cmake 2>/dev/null)
  return 1
}

# Whether it makes a program: a clang without the library of any g++ does not.
makes_programs() {
  # shellcheck disable=SC2086  # CXX may hold options
  echo 'int main() { try { throw 1; } catch (int) {} }' | $1 -x c++ - -o /dev/null 2>/dev/null
}

find_compiler() {
  local candidate
  if [[ -n ${CXX:-} ]]; then
    makes_programs "$CXX" || die "CXX is '$CXX', which makes no program: set it to a C++ compiler"
    return
  fi
  for candidate in c++ g++ clang++; do
    makes_programs "$candidate" && export CXX=$candidate && return
  done
  return 1
}

find_tools() {
  lacking=()
  find_cmake || lacking+=(cmake)
  find_compiler || lacking+=(g++)
  type -P ninja >/dev/null || type -P make >/dev/null || lacking+=(make)
  [[ ${#lacking[@]} -eq 0 ]]
}

need_tools() {
  find_tools || { install "${lacking[@]}" || true; find_tools; } && return
  # Whoever has to type it types it once: what configuring would list is in the same file.
  die "missing here: ${lacking[*]}${reason:+; $reason}. Get all: apt-get install $(
    sed -n 's/^ *convladder_need("[^"]*" \([^ "]*\) .* REQUIRED.*/\1/p' \
      "$root/common/command/cmake/Needs.cmake" | sort -u | paste -sd' ')"
}

# shellcheck shell=bash
# Steps that take time: one at a time in a folder of build/, shown as they go; sourced by ./ladder.

step=""
trap '[[ -z $step ]] || { echo >&2; say "interrupted while $step; the next call goes on from there"; }
      exit 130' INT

# Makes build/PRESET. What a run with sudo has left there, a user can't write to.
own_folder() {  # own_folder PRESET
  local foreign="$root/build"
  if mkdir -p "$root/build/$1" 2>/dev/null; then
    foreign=$(find "$root/build" -maxdepth 2 ! -type l ! -writable -print -quit)
    [[ -n $foreign ]] || return 0
    [[ -O $foreign || ! -w $root ]] || die "$foreign belongs to $(stat -c %U "$foreign"), from an" \
      "earlier run with sudo? Then: sudo chown -R $(id -un) '$root/build'"
  fi
  die "$foreign can't be written to: copy the repository to a folder of your own"
}

# One ./ladder at a time works in build/PRESET; STEP says what it does there.
in_turn() {  # in_turn PRESET STEP COMMAND...
  local status=0
  own_folder "$1"
  step="$2 build/$1"
  (
    flock --nonblock 9 || { say "another ./ladder works in build/$1: waiting for it"; flock 9; }
    "${@:3}"
  ) 9>"$root/build/$1/.lock" || status=$?
  step=""
  return "$status"
}

# On a terminal, the last of these lines.
moving_line() {
  local line width
  width=$(stty size <&2 2>/dev/null | cut -d' ' -f2)
  while IFS= read -r line; do
    printf '\r\033[K%.*s' "$((${width:-80} - 1))" "$step: $line" >&2
  done
  printf '\r\033[K' >&2
}

# Output to the log, and to a terminal as a moving line. Gives the command's status.
logged() {  # logged LOG COMMAND...
  { : >"$1"; } 2>/dev/null || return 1
  if [[ -t 2 ]]; then
    "${@:2}" 2>&1 </dev/null | tee "$1" | moving_line
    return "${PIPESTATUS[0]}"
  fi
  "${@:2}" >"$1" 2>&1 </dev/null
}

failed() {  # failed LOG WHAT: shows why
  if [[ $(df --output=avail "$root/build" | tail -n 1) -lt 64 ]]; then
    die "$2 failed: no space is left in $root/build"
  fi
  tail -n 40 "$1" >&2
  die "$2 failed, the whole log is in $1"
}

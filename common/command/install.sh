#!/usr/bin/env bash
# install.sh PACKAGE...: installs them with apt-get, as far as there are such; status 1 if that was not
# all, with the reason on stdout. Without a package: whether installing is possible at all.
set -euo pipefail

say() { printf 'ladder: %s\n' "$*" >&2; }
give_up() { echo "$1"; exit 1; }

type -P apt-get >/dev/null || give_up "there is no apt-get"
root=()  # the command that makes apt-get root
if [[ $EUID -ne 0 ]]; then
  if type -P sudo >/dev/null && sudo -n true 2>/dev/null; then
    root=(sudo -n)
  elif type -P sudo >/dev/null && [[ -t 0 ]]; then
    root=(sudo)
  else
    give_up "installing needs root or sudo"
  fi
fi
[[ $# -gt 0 ]] || exit 0

log=$(mktemp)
trap 'rm -f "$log"' EXIT
offline='failure resolving|not resolve|not connect|initiate the connection|unreachable|timed out'

# New machines install something of their own first: waits for their lock.
apt() {  # apt WORD...
  local waiting="" deadline=$((SECONDS + 900))
  until "${root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -y --no-install-recommends \
    -o DPkg::Lock::Timeout=5 -o Acquire::Retries=1 "$@" >"$log" 2>&1 </dev/null; do
    grep -qE '^E: (Could not get lock|Unable to (lock|acquire))' "$log" &&
      [[ $SECONDS -lt $deadline ]] || return 1
    [[ -n $waiting ]] || say "apt is busy (another program holds its lock): waiting for it"
    waiting=yes
    sleep 2
  done
}

say "installing with apt-get: $*"
# Interrupted while it downloads, not while it unpacks.
if apt update && apt install --download-only "$@"; then
  (trap '' INT && apt install "$@") && exit 0
fi
reason="apt-get says: $(grep -m 1 '^E: ' "$log" || tail -n 1 "$log")"
if grep -qiE "$offline" "$log"; then
  reason="apt-get reaches no package server (no network?)"
elif [[ $# -gt 1 ]]; then
  for package in "$@"; do  # each for itself: one that there isn't must not hinder the others
    (trap '' INT && apt install "$package") || true
  done
fi
give_up "$reason"

#!/usr/bin/env bash
# roots.sh [--ccache] [MACHINE...]: types the README's commands on bare Debian 12 machines, made by
# debootstrap in $ROOTS (default /var/tmp/convladder_roots), and prints what came of each as a table.
# Needs root, a network and debootstrap. What it types is the last commit's. With --ccache the host's
# ccache spares compiling the same again; without, every machine compiles all that it is asked for.
# Status 1 if something ended otherwise than it should.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
folder=${ROOTS:-/var/tmp/convladder_roots}
checkout=/home/learner/ConvLadder
failures=0
machine="" root="" prefix=()

# ---- Machines --------------------------------------------------------------------------------------

leave() {
  local mounted
  while read -r mounted; do
    umount --lazy "$mounted"
  done < <(awk -v root="$folder/" 'index($2, root) == 1 { print $2 }' /proc/mounts | sort -r)
}
trap leave EXIT

make_base() {
  [[ ! -e $folder/base/made ]] || return 0
  rm -rf "$folder/base"
  debootstrap --variant=minbase bookworm "$folder/base" >&2
  echo force-unsafe-io >"$folder/base/etc/dpkg/dpkg.cfg.d/fast"  # it is thrown away
  touch "$folder/base/made"
}

# A machine of its own over the base: the changes of this one lie in $folder/NAME.
start() {  # start NAME WHAT
  leave
  machine=$1 root=$folder/$1/root prefix=()
  rm -rf "${folder:?}/$1"
  mkdir -p "$folder/$1"/{upper,work,root} "$folder/archives/partial"
  mount -t overlay overlay "$root" \
    -o "lowerdir=$folder/base,upperdir=$folder/$1/upper,workdir=$folder/$1/work"
  mount --bind /proc "$root/proc"
  mount --bind /dev "$root/dev"
  mount --bind "$folder/archives" "$root/var/cache/apt/archives"  # packages are fetched once
  cp /etc/resolv.conf "$root/etc/"
  if [[ $ccache == yes ]]; then
    mkdir -p "$root/opt/ccache" "$folder/cache/files"
    chmod 777 "$folder/cache/files"  # for a user without rights, too
    mount --bind "$folder/cache" "$root/opt/ccache"
    ldd "$(type -P ccache)" | grep -o '/[^ ]*' | xargs -I{} cp -Lu {} "$folder/cache/"
    cp -u "$(type -P ccache)" "$folder/cache/program"
    printf '#!/bin/sh\nexec %s --argv0 ccache --library-path /opt/ccache /opt/ccache/program "$@"\n' \
      /opt/ccache/ld-linux-x86-64.so.2 >"$folder/cache/ccache"
    chmod +x "$folder/cache/ccache"
  fi
  check_out "$checkout"
  printf '| **%s** | %s | | | |\n' "$1" "$2"
}

check_out() {  # check_out FOLDER
  mkdir -p "$root$1"
  git -C "$repository" archive HEAD | tar -x -C "$root$1"
}

inside() {  # inside COMMAND: as root, without a word in the table
  chroot "$root" bash -c "$1" >&2
}

packages() { inside "apt-get update -q && apt-get install -qy --no-install-recommends $*"; }

# Types a command in the checkout. It must end with that status and print that pattern; with status 1
# it must print one line of error, and that one last.
typed=0
type_it() {  # type_it STATUS PATTERN COMMAND
  local status=0 verdict="as it should" log seconds errors
  log=$folder/$machine/$(printf '%02d' "$((++typed))").log
  TIMEFORMAT='%U %S'
  seconds=$({ time "${prefix[@]}" chroot "$root" /usr/bin/env -i HOME=/root \
    PATH="${path:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}" "${launcher[@]}" \
    ${user:+setpriv --reuid "$user" --regid "$user" --init-groups} bash -c "cd '$checkout' && $3" \
    >"$log" 2>&1 </dev/null; } 2>&1) || status=$?
  errors=$(grep -c '^ladder: error: ' "$log" || true)
  if [[ $status -ne $1 ]] || ! grep -qE -e "$2" "$log" || [[ $status -eq 1 && $errors -ne 1 ]]; then
    verdict="**not as it should**"
    failures=$((failures + 1))
    tail -n 20 "$log" >&2
  fi
  # shellcheck disable=SC2016  # the table's own quotes
  printf '| | `%s` | %s | %s | %.0f |\n' "${3//|/\\|}" "$status" "$verdict" \
    "$(awk '{ print $1 + $2 }' <<<"${seconds##*$'\n'}")"
}

# ---- What is typed ---------------------------------------------------------------------------------

PASS='01_naive .* pass$'
TESTS='^[1-9][0-9]* passed, 0 failed, [0-9]+ skipped$'
TEST='./ladder test --stage 01_naive'

all_three() {
  type_it 0 '^\./ladder run will install: ' './ladder doctor'
  type_it 0 "$PASS" './ladder run'
  type_it 0 "$TESTS" "$TEST"
}

nothing() {
  start nothing "nothing installed"
  all_three
  type_it 0 '^\./ladder run works here; backend: sim' './ladder doctor'
  type_it 0 'No errors|Build files' 'cmake --preset sim'
  type_it 0 '' 'cmake --build --preset sim --target 01_naive test_01_naive'
  type_it 0 '100% tests passed' 'ctest --preset sim -L 01_naive'
  type_it 0 "$PASS" 'build/sim/bin/01_naive run'
  type_it 0 'wrote' './ladder report'
  type_it 0 "$PASS" "ln -s '$checkout/ladder' /usr/local/bin/ && cd / && CDPATH=/home ladder run"
  type_it 0 "$PASS" 'env -i ./ladder run'
}

only_blas() {
  start only_blas "\`libblas-dev\`, the reference BLAS"
  packages libblas-dev
  all_three
  type_it 0 'libblas' "cut -f3,7 build/sim/needs.tsv | grep ^CBLAS"
}

only_boost() {
  start only_boost "\`libboost-dev\`: headers without libraries"
  packages libboost-dev
  all_three
}

no_python() {
  start no_python "no Python to be had: apt-get may not install it"
  printf 'Package: python3*\nPin: release *\nPin-Priority: -1\n' >"$root/etc/apt/preferences.d/none"
  all_three
  type_it 1 'needs Python 3; .*apt-get install python3$' './ladder report'
}

# apt's locks are those of fcntl(), which flock(1) does not take.
# shellcheck disable=SC2016
LOCK='use Fcntl; foreach (@ARGV) { open(my $f, ">", $_) or die; push @kept, $f;
  my $lock = pack("s s x4 q q l x4", F_WRLCK, 0, 0, 0, 0); fcntl($f, F_SETLK, $lock) or die; }
  print "locked\n"; sleep 60;'
apt_locked() {
  local holder
  start apt_locked "another program holds apt's locks for a minute"
  chroot "$root" perl -e "$LOCK" /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock \
    /var/lib/apt/lists/lock >&2 &
  holder=$!
  sleep 1
  type_it 0 'apt is busy' './ladder run'
  wait "$holder"
  type_it 0 "$TESTS" "$TEST"
}

foreign_python() {
  start foreign_python "a Python of its own first in PATH, without modules"
  packages python3
  mkdir -p "$root/opt/foreign"
  printf '#!/bin/sh\nexec /usr/bin/python3 -I -S "$@"\n' >"$root/opt/foreign/python3"
  chmod +x "$root/opt/foreign/python3"
  path=/opt/foreign:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  all_three
  type_it 0 'index.html' './ladder report'
  path=""
}

only_clang() {
  start only_clang "clang as the only compiler"
  packages clang
  all_three
  type_it 0 'Clang' "cut -f3,8 build/sim/needs.tsv | grep '^C++ compiler'"
  type_it 0 'GNU' "cut -f3,8 build/sim-count/needs.tsv | grep '^C++ compiler'"
}

with_ninja() {
  start with_ninja "ninja instead of make"
  packages ninja-build
  all_three
  type_it 0 'build.ninja' 'ls build/sim build/sim-count'
}

no_sudo() {
  local line
  start no_sudo "a user who is neither root nor has sudo"
  chroot "$root" useradd --create-home learner 2>/dev/null || true
  chroot "$root" chown -R learner /home/learner
  user=learner
  type_it 1 'missing here: cmake g\+\+ make; installing needs root or sudo' './ladder run'
  line=$(grep -o 'apt-get install .*' "$folder/$machine/"*.log | tail -n 1)
  packages "${line##*apt-get install }"  # as the line says, by who may
  type_it 0 '^\./ladder run works here' './ladder doctor'
  type_it 0 "$PASS" './ladder run'
  type_it 1 'needs GoogleTest; installing needs root or sudo' "$TEST"
  user=""
}

with_spaces() {
  start with_spaces "spaces in the path of the checkout"
  checkout="/home/learner/my own folder/ConvLadder"
  check_out "$checkout"
  all_three
  checkout=/home/learner/ConvLadder
}

read_only() {
  start read_only "a checkout that can't be written to"
  mount --bind "$root$checkout" "$root$checkout"
  mount -o remount,ro,bind "$root$checkout"
  type_it 1 "error: .*build can't be written to: copy" './ladder run'
}

no_network() {
  start no_network "no network"
  umount "$root/var/cache/apt/archives"  # nor what others have fetched
  prefix=(unshare --net)
  type_it 1 'no network.*apt-get install cmake g\+\+ libboost-context-dev libopenblas-dev make$' \
    './ladder run'
  packages cmake g++ make
  inside "apt-get clean"
  type_it 1 'no network.*apt-get install libboost-context-dev libopenblas-dev$' './ladder run'
}

all=(nothing only_blas only_boost no_python apt_locked foreign_python only_clang with_ninja no_sudo
  with_spaces read_only no_network)
ccache=no launcher=() path="" user=""
if [[ ${1:-} == --ccache ]]; then
  ccache=yes
  launcher=(CMAKE_CXX_COMPILER_LAUNCHER=/opt/ccache/ccache CCACHE_DIR=/opt/ccache/files
    CCACHE_COMPILERCHECK=content CCACHE_UMASK=000)
  shift
fi
for name in "$@"; do
  [[ " ${all[*]} " == *" $name "* ]] || { echo "roots.sh: there is no '$name', but ${all[*]}" >&2; exit 2; }
done
[[ $EUID -eq 0 ]] || { echo "roots.sh: needs root" >&2; exit 2; }
make_base
printf '| machine | typed | status | | core-seconds |\n| --- | --- | --: | --- | --: |\n'
for name in "${@:-${all[@]}}"; do
  "$name"
done
echo "$failures not as they should be" >&2
[[ $failures -eq 0 ]]

#!/usr/bin/env bash
# bare_machine.sh [--no-network] [--user] [--prepare COMMAND] COMMAND...: types the commands, one after the
# other, in the last commit's checkout on a bare Debian 12: what debootstrap's smallest root has, and what
# was installed by --prepare, or by the commands before. It is made in $ROOTS (default
# /var/tmp/convladder_roots). --user: a user who is neither root nor has sudo. Needs root, a network and
# debootstrap. Prints each command's status behind its output; the exit status is the last one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
roots=${ROOTS:-/var/tmp/convladder_roots} spaces=(--mount) user=root prepare=true
while [[ ${1:-} == --* ]]; do
  case $1 in
    --no-network) spaces+=(--net) ;;
    --user) user=learner ;;
    --prepare) prepare=$2; shift ;;
    *) echo "bare_machine.sh: there is no '$1'" >&2; exit 2 ;;
  esac
  shift
done

if [[ ! -e $roots/base/made ]]; then
  rm -rf "$roots/base"
  debootstrap --variant=minbase bookworm "$roots/base" >&2
  touch "$roots/base/made"
fi
machine=$(mktemp -d "$roots/machine.XXXXXX")
trap 'rm -rf "$machine"' EXIT
home=$machine/upper/home/learner
mkdir -p "$home/ConvLadder" "$machine/work" "$machine/root"
cp /etc/resolv.conf "$roots/base/etc/resolv.conf"
git archive HEAD | tar -x -C "$home/ConvLadder"

# inside USER COMMAND NAMESPACE...
inside() {
  # shellcheck disable=SC2016  # the shell inside expands them
  unshare "${@:3}" bash -ec '
    mount -t overlay overlay root -o lowerdir=../base,upperdir=upper,workdir=work
    mount --bind /proc root/proc; mount --bind /dev root/dev
    exec chroot root /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      setpriv --reuid "$0" --regid "$0" --init-groups bash -c "cd /home/learner/ConvLadder && $1"' "$1" "$2" \
    </dev/null
}
cd "$machine"
inside root "useradd --create-home learner; chown -R learner /home/learner; $prepare" --mount >&2
status=0
for command in "$@"; do
  printf '$ %s\n' "$command"
  status=0
  inside "$user" "$command" "${spaces[@]}" 2>&1 || status=$?
  echo "status $status"
done
exit "$status"

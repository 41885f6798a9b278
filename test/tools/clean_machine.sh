#!/bin/sh
# The README's two commands on a machine that has nothing but git and apt: a chroot made by debootstrap, a clone of
# HEAD, no files shared with this machine. Root only.
#
#   test/tools/clean_machine.sh [SUITE [DIR [COMMANDS]]]
#
# SUITE: bookworm (default), trixie, noble ...; DIR is kept for the next time, with its packages: remove it for a run
# from nothing; COMMANDS: what bootstrap is asked for, by default "test demo". TILE_LLVM=22 is passed on, if the suite has it.
set -eu
suite=${1:-bookworm}
dir=${2:-/tmp/clean-$suite}
commands=${3:-test demo}
src=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)

[ -e "$dir/etc/os-release" ] || {
    debootstrap --variant=minbase --include=git,ca-certificates "$suite" "$dir" >"$dir.log" 2>&1 ||
        { tail "$dir.log"; exit 1; }
}
mount -t proc proc "$dir/proc"
mount --bind /dev "$dir/dev"
trap 'umount "$dir/dev" "$dir/proc"' EXIT INT TERM

rm -rf "$dir/srv/tile" "$dir/srv/tile.git"
git clone -q --bare "$src" "$dir/srv/tile.git"
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/srv LC_ALL=C.UTF-8 COMMANDS="$commands" TILE_LLVM="${TILE_LLVM:-19}" chroot "$dir" sh -c '
    set -u
    cd /srv && git clone -q tile.git tile && cd tile || exit 1
    for command in $COMMANDS; do
        start=$(date +%s)
        ./bootstrap $command
        echo "== bootstrap $command: exit $? after $(($(date +%s) - start)) s"
    done'

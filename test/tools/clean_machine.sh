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

# A debootstrap older than the suite takes it for an older one of its kind.
known() {
    scripts=/usr/share/debootstrap unchecked=
    [ -e "$scripts/scripts/$suite" ] || {
        [ -e /usr/share/keyrings/ubuntu-archive-keyring.gpg ] || unchecked=--no-check-gpg
        cp -r $scripts "$dir.scripts" && scripts=$dir.scripts && ln -s gutsy "$scripts/scripts/$suite" # Ubuntu, all since 2007
    }
}

# What apt reads on a fresh machine: also what came after the release, and of Ubuntu all that is free.
sources() {
    read -r deb url rest <"$dir/etc/apt/sources.list"
    case $url in
    *ubuntu*) for s in "$suite" "$suite-updates" "$suite-security"; do echo "$deb $url $s main universe"; done ;;
    *) printf '%s\n' "$deb $url $rest" "$deb $url $suite-updates main" "$deb $url-security $suite-security main" ;;
    esac
}

[ -e "$dir/etc/os-release" ] || {
    known
    # shellcheck disable=SC2086 # one option or none
    DEBOOTSTRAP_DIR=$scripts debootstrap $unchecked --variant=minbase --include=git,ca-certificates "$suite" "$dir" >"$dir.log" 2>&1 ||
        { tail "$dir.log"; exit 1; }
    sources >"$dir.list"
    mv "$dir.list" "$dir/etc/apt/sources.list"
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

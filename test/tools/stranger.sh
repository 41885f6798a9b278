#!/bin/sh
# Runs a command as a stranger would: in a copy of this tree whose path has a blank, a letter beyond ASCII and the word
# "tile"; with HOME, the XDG folders and TMPDIR elsewhere; as another user where this one is root.
#
#   test/tools/stranger.sh COMMAND [WORD...]      e.g. test/tools/stranger.sh ./bootstrap test
#
# What the tree holds is copied, committed or not, but nothing that git ignores. The exit status is the command's.
# Packages are installed first: the other user may not. TILE_STRANGER=DIR keeps the copy in DIR, for another run.
set -eu
umask 022
root=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
place=${TILE_STRANGER:-$(mktemp -d "${TMPDIR:-/tmp}/stranger.XXXXXX")}
tree="$place/eine tile-Übung"
home="$place/sein Haus"
tmp="$place/tmp"
user=nobody

"$root/bootstrap" packages

mkdir -p "$tree" "$home/cache" "$home/config" "$home/data" "$home/run" "$tmp"
(cd "$root" && git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T -) |
    tar -x -m -C "$tree"
chmod 755 "$place"
chmod 700 "$home/run"

as_stranger() {
    env -u CDPATH HOME="$home" XDG_CACHE_HOME="$home/cache" XDG_CONFIG_HOME="$home/config" XDG_DATA_HOME="$home/data" \
        XDG_RUNTIME_DIR="$home/run" TMPDIR="$tmp" TILE_NO_INSTALL=1 "$@"
}

cd "$tree"
status=0
if [ "$(id -u)" = 0 ]; then
    chown -R "$user" "$place"
    as_stranger setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups "$@" || status=$?
else
    as_stranger "$@" || status=$?
fi
[ -n "${TILE_STRANGER:-}" ] || rm -rf "$place"
exit "$status"

#!/bin/sh
# The packages of a build on a machine that has nothing else: a chroot made by debootstrap in which the .deb packages, then the
# tarball, then the wheel are installed, and programs are built with CMake, Make and Meson, in C and C++, and run. Root only.
#
#   cpack (in build/) && ninja -C build wheel && test/tools/clean_packages.sh [SUITE [DIR]]
#
# DIR is kept for the next time. The last line is "N programs ran, 0 failed".
set -eu
suite=${1:-bookworm}
dir=${2:-/tmp/clean-packages-$suite}
root=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)

[ -e "$dir/etc/os-release" ] || debootstrap --variant=minbase \
    --include=ca-certificates,cmake,make,gcc,g++,meson,pkg-config,python3-numpy,xz-utils "$suite" "$dir" >"$dir.log" 2>&1
rm -rf "$dir/srv/packages" "$dir/srv/user"
mkdir -p "$dir/srv/packages" "$dir/srv/user"
cp "$root"/build/packages/*.deb "$root"/build/packages/*.tar.xz "$root"/build/wheel/*.whl "$dir/srv/packages"
cp "$root"/test/tools/clean_packages/* "$dir/srv/user"
mount -t proc proc "$dir/proc"
trap 'umount "$dir/proc"' EXIT INT TERM
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/srv LC_ALL=C.UTF-8 chroot "$dir" sh /srv/user/inside.sh

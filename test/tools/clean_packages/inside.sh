# Inside of the chroot: installs each package in turn and tries the programs of this folder.
set -u
cd /srv/user || exit 1
ran=0
failed=0

try() { # NAME COMMAND...: its output ends with "sum 10"
    name=$1
    shift
    out=$("$@" 2>&1)
    case $out in
    *"sum 10") ran=$((ran + 1)) && echo "fine   $name" ;;
    *) failed=$((failed + 1)) && echo "FAILED $name" && echo "$out" | tail -n 8 ;;
    esac
}

by_cmake() { # PREFIX
    rm -rf out && cmake -S . -B out "-DCMAKE_PREFIX_PATH=$1" && cmake --build out && out/jit && out/cxx && out/ahead
}
by_make() {
    make -B && ./made && ./made_cxx
}
by_meson() {
    rm -rf out && meson setup out && meson compile -C out && out/jit
}
by_python() {
    python3 use.py
}

apt-get -q install -y /srv/packages/*.deb >/tmp/install.log 2>&1 || dpkg -i /srv/packages/*.deb
try "tilec of the .deb" sh -c 'tilec run add.tile x="full(1)[10]" s="zeros[1]" >/dev/null && echo sum 10'
try "CMake, C and C++, .deb" by_cmake /usr
try "Make, pkg-config, C and C++, .deb" by_make
try "Meson, .deb" by_meson
dpkg -r tilec-farm libtile-collectives-mpi0.1 libtile-dev libtile-collectives0.1 tilec libtilekernels0.1 libtile0.1 >/dev/null

mkdir -p /opt/anywhere && tar -xJf /srv/packages/tile-*.tar.xz -C /opt/anywhere --strip-components=1
PKG_CONFIG_PATH=$(echo /opt/anywhere/lib*/pkgconfig)
PATH=/opt/anywhere/bin:$PATH
export PATH PKG_CONFIG_PATH
try "CMake, C and C++, tarball" by_cmake /opt/anywhere
try "Make, pkg-config, C and C++, tarball" by_make
try "Meson, tarball" by_meson
rm -rf /opt/anywhere

python3 -m zipfile -e /srv/packages/tile-*.whl /srv/user/site && chmod 755 /srv/user/site/tile/lib/*
PYTHONPATH=/srv/user/site
export PYTHONPATH
try "Python, wheel" by_python
echo "$ran programs ran, $failed failed"
[ $failed = 0 ]

"""Makes the wheel of this folder: the Python files and the built libraries. What pip calls (PEP 517), and a command:

    build_wheel.py FOLDER       writes tile-VERSION-py3-none-PLATFORM.whl there and prints its path

The libraries come from TILE_PREFIX (where `cmake --install` or the packages put them) or TILE_BUILD (a build tree), else from
../build, else from /usr/local or /usr.
"""
import base64
import glob
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = ("libtilec.so.0.1", "libtilec-core.so.0.1")
OPTIONAL = ("libtilekernels.so.0.1", "tile_launcher.abi3.so")  # of tile.kernels; of quick calls
LINKED_IN = ("libjansson-dev", "zlib1g-dev", "libzstd-dev", "llvm-19-dev", "llvm-22-dev")  # Debian's packages, those that are there
TIME = (2020, 1, 1, 0, 0, 0)  # of every file: equal input gives equal wheels


def project(key):
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as f:
        return re.search(rf'^{key} = (?:\[?)"([^"]+)"', f.read(), re.M)[1]


def library_folders():
    """(folder of the libraries, path of tilec), the first that the caller may mean."""
    def installed(prefix):
        for lib in sorted(glob.glob(os.path.join(prefix, "lib", "*-linux-*"))) + [os.path.join(prefix, d) for d in ("lib64", "lib")]:
            yield lib, os.path.join(prefix, "bin", "tilec")

    def built(folder):
        yield os.path.join(folder, "package"), os.path.join(folder, "package", "tilec")

    prefix, build = os.environ.get("TILE_PREFIX"), os.environ.get("TILE_BUILD")
    if prefix:
        return list(installed(prefix))
    if build:
        return list(built(build))
    return [*built(os.path.join(HERE, os.pardir, "build")), *installed("/usr/local"), *installed("/usr")]


def find_libraries():
    folders = library_folders()
    for lib, tilec in folders:
        paths = [os.path.join(lib, name) for name in LIBRARIES] + [tilec]
        if all(os.path.exists(p) for p in paths):
            return [p for p in (os.path.join(lib, name) for name in OPTIONAL) if os.path.exists(p)] + paths
    sys.exit("tile: the built libraries are not found: run ./bootstrap build first, or set TILE_PREFIX or TILE_BUILD. Looked in "
             + ", ".join(lib for lib, _ in folders))


def stripped(path, folder):
    """A copy without debug information, where the machine has strip."""
    copy = shutil.copy(path, os.path.join(folder, os.path.basename(path)))
    os.chmod(copy, 0o755)
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-unneeded", copy], check=True)
    return copy


def platform_tag(paths):
    """The oldest glibc that has all symbols which the libraries need; what else they need decides between manylinux and linux."""
    newest, plain = 17, True
    for path in paths:
        with open(path, "rb") as f:
            data = f.read()
        newest = max([newest, *(int(v) for v in re.findall(rb"\0GLIBC_2\.(\d+)(?=\0)", data))])
        plain = plain and b"\0libzstd.so.1\0" not in data and b"\0libz.so.1\0" not in data
    machine = platform.machine()
    return f"manylinux_2_{newest}_{machine}" if plain else f"linux_{machine}"


def metadata():
    lines = ["Metadata-Version: 2.1", "Name: " + project("name"), "Version: " + project("version"), "Summary: " + project("description"),
             "License: Apache-2.0 WITH LLVM-exception", "Requires-Python: " + project("requires-python"),
             "Requires-Dist: " + project("dependencies"), "Description-Content-Type: text/markdown", ""]
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as f:
        return "\n".join(lines) + "\n" + f.read()


def info_files(tag):
    info = f"tile-{project('version')}.dist-info/"
    yield info + "METADATA", metadata()
    yield info + "WHEEL", f"Wheel-Version: 1.0\nGenerator: build_wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n"
    yield info + "entry_points.txt", "[console_scripts]\ntilec = tile.compiler:main\n"
    for license_path in (os.path.join(HERE, os.pardir, "LICENSE"),):
        if os.path.exists(license_path):
            with open(license_path, encoding="utf-8") as f:
                yield info + "LICENSE", f.read()
    for name in LINKED_IN:
        copyright_path = f"/usr/share/doc/{name}/copyright"
        if os.path.exists(copyright_path):
            with open(copyright_path, encoding="utf-8") as f:
                yield f"{info}licenses/{name}.copyright", f.read()


class Wheel:
    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.record = []

    def add(self, name, data, mode=0o644):
        entry = zipfile.ZipInfo(name, TIME)
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")

    def close(self, record_name):
        entry = zipfile.ZipInfo(record_name, TIME)
        entry.external_attr = 0o100644 << 16
        self.zip.writestr(entry, "\n".join([*self.record, record_name + ",,"]) + "\n")
        self.zip.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517. The name of the wheel."""
    with tempfile.TemporaryDirectory() as scratch:
        libraries = [stripped(p, scratch) for p in find_libraries()]
        tag = "py3-none-" + platform_tag(libraries)
        name = f"tile-{project('version')}-{tag}.whl"
        unfinished = os.path.join(wheel_directory, name + ".part")
        wheel = Wheel(unfinished)
        files = glob.glob(os.path.join(HERE, "tile", "*.py")) + [os.path.join(HERE, name) for name in ("tile/py.typed", "tutorial.py")]
        for path in sorted(files, key=os.path.basename):  # python3 -m tile.tutorial
            with open(path, "rb") as f:
                wheel.add("tile/" + os.path.basename(path), f.read())
        for path in libraries:
            with open(path, "rb") as f:
                wheel.add("tile/lib/" + os.path.basename(path), f.read(), 0o755)
        for path, text in info_files(tag):
            wheel.add(path, text.encode())
        wheel.close(f"tile-{project('version')}.dist-info/RECORD")
    os.replace(unfinished, os.path.join(wheel_directory, name))
    return name


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """PEP 517: what the wheel will say, without making it."""
    folder = f"tile-{project('version')}.dist-info"
    for path, text in info_files("py3-none-linux_" + platform.machine()):
        os.makedirs(os.path.dirname(os.path.join(metadata_directory, path)), exist_ok=True)
        with open(os.path.join(metadata_directory, path), "w", encoding="utf-8") as f:
            f.write(text)
    return folder


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("the package is built from the whole tree: clone it and run ./bootstrap build")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    print(os.path.join(sys.argv[1], build_wheel(sys.argv[1])))

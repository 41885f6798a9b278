"""Makes the wheel of this folder: the Python files and the built libraries. What pip calls (PEP 517), and a command:

    build_wheel.py FOLDER           writes tile-VERSION-py3-none-PLATFORM.whl there and prints its path
    build_wheel.py --parts FOLDER   the same as three wheels, each below 25 MB: tile, with code generators for NVIDIA's GPUs and this kind of CPU; tile-targets,
                                    with all; tile-kernels, of tile.kernels. pip install 'tile[targets,kernels]' takes them together

The libraries come from TILE_PREFIX (where `cmake --install` or the packages put them) or TILE_BUILD (a build tree), else from
../build, else from /usr/local or /usr. TILE_WHEEL_LEVEL is how hard they are packed, 1 to 9 (the default).
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
KERNELS, LAUNCHER = "libtilekernels.so.0.1", "tile_launcher.abi3.so"  # of tile.kernels; of quick calls: where they were built
CORE, FEW, ALL = "libtilec-core.so.0.1", os.path.join("few", "libtilec-core.so.0.1"), "libtilec-core-all.so.0.1"
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
            return [p for p in (os.path.join(lib, name) for name in (KERNELS, LAUNCHER)) if os.path.exists(p)] + paths
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


class Part:
    """A wheel: its name on the index, what it is, what it requires, and its libraries, by their paths in the package."""

    def __init__(self, name, summary, requires, libraries):
        self.name, self.summary, self.requires, self.libraries = name, summary, requires, libraries

    @property
    def stem(self):
        return f"{self.name.replace('-', '_')}-{project('version')}"


def whole(libraries):
    return Part(project("name"), project("description"), [project("dependencies")], {os.path.basename(p): p for p in libraries})


def parts(libraries):
    """tile, tile-targets, tile-kernels, as far as they were built."""
    named, version = {os.path.basename(p): p for p in libraries}, project("version")
    few = os.path.join(os.path.dirname(named[CORE]), FEW)
    if not os.path.exists(few):
        sys.exit(f"tile: {few} is not there: --parts takes the libraries of a build tree")
    extras = [f'tile-{extra}=={version}; extra == "{extra}"' for extra in ("targets", "kernels")]
    yield Part("tile", project("description"), [project("dependencies"), *extras],
               {**{name: path for name, path in named.items() if name != KERNELS}, CORE: few})
    yield Part("tile-targets", "Code for AMD's GPUs and other CPUs, for the package tile", ["tile==" + version], {ALL: named[CORE]})
    if KERNELS in named:
        yield Part("tile-kernels", "libtilekernels, for tile.kernels of the package tile", ["tile==" + version], {KERNELS: named[KERNELS]})


def metadata(part):
    lines = ["Metadata-Version: 2.1", "Name: " + part.name, "Version: " + project("version"), "Summary: " + part.summary,
             "License: Apache-2.0 WITH LLVM-exception", "Requires-Python: " + project("requires-python"),
             *("Requires-Dist: " + r for r in part.requires), *("Provides-Extra: " + r.split('"')[1] for r in part.requires if "extra ==" in r)]
    if part.name != project("name"):
        return "\n".join(lines) + "\n"
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as f:
        return "\n".join([*lines, "Description-Content-Type: text/markdown", ""]) + "\n" + f.read()


def info_files(part, tag):
    info = f"{part.stem}.dist-info/"
    yield info + "METADATA", metadata(part)
    yield info + "WHEEL", f"Wheel-Version: 1.0\nGenerator: build_wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n"
    if part.name == project("name"):
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
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=int(os.environ.get("TILE_WHEEL_LEVEL", 9)))
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


def write_wheel(part, wheel_directory):
    """The name of the wheel."""
    with tempfile.TemporaryDirectory() as scratch:
        libraries = {name: stripped(path, scratch) for name, path in part.libraries.items()}
        tag = "py3-none-" + platform_tag(libraries.values())
        name = f"{part.stem}-{tag}.whl"
        unfinished = os.path.join(wheel_directory, name + ".part")
        wheel = Wheel(unfinished)
        if part.name == project("name"):
            files = glob.glob(os.path.join(HERE, "tile", "*.py")) + [os.path.join(HERE, name) for name in ("tile/py.typed", "tutorial.py")]
            for path in sorted(files, key=os.path.basename):  # python3 -m tile.tutorial
                with open(path, "rb") as f:
                    wheel.add("tile/" + os.path.basename(path), f.read())
        for library, path in libraries.items():
            with open(path, "rb") as f:
                wheel.add("tile/lib/" + library, f.read(), 0o755)
        for path, text in info_files(part, tag):
            wheel.add(path, text.encode())
        wheel.close(f"{part.stem}.dist-info/RECORD")
    os.replace(unfinished, os.path.join(wheel_directory, name))
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517. The name of the wheel."""
    return write_wheel(whole(find_libraries()), wheel_directory)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """PEP 517: what the wheel will say, without making it."""
    folder = f"tile-{project('version')}.dist-info"
    for path, text in info_files(whole([]), "py3-none-linux_" + platform.machine()):
        os.makedirs(os.path.dirname(os.path.join(metadata_directory, path)), exist_ok=True)
        with open(os.path.join(metadata_directory, path), "w", encoding="utf-8") as f:
            f.write(text)
    return folder


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("the package is built from the whole tree: clone it and run ./bootstrap build")


if __name__ == "__main__":
    folder = sys.argv[-1]
    if sys.argv[1:-1] not in ([], ["--parts"]) or len(sys.argv) < 2 or folder.startswith("-"):
        sys.exit(__doc__)
    os.makedirs(folder, exist_ok=True)
    for made in parts(find_libraries()) if len(sys.argv) == 3 else [whole(find_libraries())]:
        print(os.path.join(folder, write_wheel(made, folder)))

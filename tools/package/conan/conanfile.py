"""Conan 2: the compiler, the runtime and, if asked, libtilekernels, from this source tree.

    conan create tools/package/conan [-o kernels=True] [-o llvm=22]
    conan export-pkg tools/package/conan [-c user.tile:build=FOLDER]    of a build folder that is there already (default: build)

LLVM is the distribution's, and so are jansson, zlib and zstd, whose archives are linked in: Conan checks that the packages are there. In CMake,
find_package(Tile) finds the package's own files, as after `cmake --install`.
"""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy, load
from conan.tools.system.package_manager import Apt

SOURCES = ("CMakeLists.txt", "LICENSE", "codegen/*", "frontend/*", "ir/*", "passes/*", "python/*", "runtime/*", "stdlib/*", "tools/*")


class Tile(ConanFile):
    name = "tile"
    license = "Apache-2.0 WITH LLVM-exception"
    description = "compiler and runtime of tile kernels"
    topics = ("compiler", "gpu", "kernels")
    languages = "C"
    settings = "os", "arch", "compiler", "build_type"
    options = {"kernels": [True, False], "llvm": ["19", "22"]}
    default_options = {"kernels": False, "llvm": "19"}

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, "../../../CMakeLists.txt"))
        self.version = re.search(r"project\([^)]*VERSION\s+([\d.]+)", text)[1]

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "../../..")
        for pattern in SOURCES:
            copy(self, pattern, root, self.export_sources_folder, excludes=("*/__pycache__/*", "*.pyc"))

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("tile is for Linux")

    def layout(self):
        # beside the recipe, the source tree is three folders up; in Conan's cache it is where export_sources has put it
        self.folders.root = "../../.."
        self.folders.build = self.conf.get("user.tile:build", default="build")
        self.folders.generators = os.path.join(self.folders.build, "conan")

    def generate(self):
        # here, not in system_requirements: who uses the package needs none of them
        Apt(self).install([f"llvm-{self.options.llvm}-dev", "libjansson-dev", "zlib1g-dev", "libzstd-dev", "bison", "re2c"])
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        toolchain.cache_variables.update(TILE_TESTS=False, TILE_WERROR=False, TILE_KERNELS=bool(self.options.kernels), TILE_LLVM=str(self.options.llvm))
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        # not by CMake's helper, which wants what generate() writes: a build folder made without Conan has none
        self.run(f'cmake --install "{self.build_folder}" --prefix "{self.package_folder}" --strip')
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")
        runtime = self.add("runtime", "tile", "tile")
        runtime.system_libs = ["pthread", "dl", "m"]
        runtime.builddirs = ["lib/cmake/Tile"]
        compiler = self.add("compiler", "tilec", "tilec", requires=["runtime"])
        compiler.exelinkflags = ["-Wl,-u,tl_driver_ref", "-Wl,-u,tl_driver_emu"]
        self.add("collectives", "tile-collectives", "tile-collectives", requires=["runtime"])
        if self.options.kernels:
            self.add("kernels", "tilekernels", "tilekernels", requires=["runtime"])

    def add(self, component, library, pc, requires=()):
        info = self.cpp_info.components[component]
        info.libs = [library]
        info.requires = list(requires)
        info.set_property("pkg_config_name", pc)
        return info

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class TileTest(ConanFile):
    """A program with a kernel compiled ahead of time, and one that compiles it when it runs."""
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps"
    languages = "C"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if not can_run(self):
            return
        for program in ("ahead", "jit"):
            self.run(f'"{os.path.join(self.build_folder, program)}"', cwd=self.source_folder, env="conanrun")

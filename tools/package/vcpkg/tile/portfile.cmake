# The tree that this port lies in: vcpkg install tile --overlay-ports=CLONE/tools/package/vcpkg

# Programs, archives and shared libraries lie side by side, as `cmake --install` puts them, and find each other from where they are.
set(VCPKG_BUILD_TYPE release)
set(VCPKG_FIXUP_ELF_RPATH OFF)
set(VCPKG_POLICY_ALLOW_EXES_IN_BIN enabled)

vcpkg_check_features(OUT_FEATURE_OPTIONS features FEATURES kernels TILE_KERNELS)
get_filename_component(source "${CURRENT_PORT_DIR}/../../../.." ABSOLUTE)
vcpkg_cmake_configure(SOURCE_PATH "${source}" OPTIONS -DTILE_TESTS=OFF -DTILE_WERROR=OFF ${features})
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME tile CONFIG_PATH lib/cmake/Tile)
vcpkg_fixup_pkgconfig()
vcpkg_install_copyright(FILE_LIST "${source}/LICENSE")

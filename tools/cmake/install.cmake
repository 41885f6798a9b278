# What `cmake --install` puts in place: the programs, the public headers, one archive per public library with all it
# needs inside, the runtime and the kernels as shared libraries too, a CMake package (find_package(Tile): Tile::runtime,
# Tile::runtime_shared, Tile::kernels, Tile::kernels_shared, Tile::collectives, Tile::collectives_shared, Tile::compiler, Tile::tilec), pkg-config files, the files of tools/editors, a manual page and
# completion for shells. The target uninstall takes it away again.
include(CMakePackageConfigHelpers)

# libNAME.a from the objects of the tree's own archives.
function(tile_public_library name)
  set(objects)
  foreach(target ${ARGN})
    if(TARGET ${target})
      list(APPEND objects $<TARGET_OBJECTS:${target}>)
    endif()
  endforeach()
  add_library(tile_public_${name} STATIC ${objects})
  set_target_properties(tile_public_${name} PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE C
    ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/package)
  install(TARGETS tile_public_${name} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  # what --strip, as packages use it, leaves out
  install(CODE "if(CMAKE_INSTALL_DO_STRIP)
    cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_PREFIX OUTPUT_VARIABLE prefix)
    cmake_path(APPEND prefix \"${CMAKE_INSTALL_LIBDIR}\" \"lib${name}.a\")
    execute_process(COMMAND ${CMAKE_STRIP} --strip-debug \"\$ENV{DESTDIR}\${prefix}\" COMMAND_ERROR_IS_FATAL ANY)
  endif()" COMPONENT development)
endfunction()

tile_public_library(tile tile_runtime)
# The compiler for programs: what finds kernels in the cache, and libtilec-core.so, which it loads to compile. Or all in one
# archive, for programs that are to hold LLVM themselves.
tile_public_library(tilec tilec_thin tile_build_id tile_frontend tile_ir tile_jit tile_ref tile_emu)
# what the tree's archives hold besides objects of ours
set(blake3 ${CMAKE_BINARY_DIR}/codegen/blake3.o)
set(tune_read ${CMAKE_BINARY_DIR}/runtime/tune_read.o)
set_source_files_properties(${blake3} ${tune_read} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
target_sources(tile_public_tilec PRIVATE ${blake3} ${tune_read})
add_dependencies(tile_public_tilec tilec_thin tile_jit)
tile_public_library(tilec-full tilec_objects tile_build_id tile_frontend tile_passes tile_ir tile_jit tile_ref tile_emu)
target_sources(tile_public_tilec-full PRIVATE ${tune_read})
add_dependencies(tile_public_tilec-full tile_jit)
install(TARGETS tilec_core LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT compiler NAMELINK_SKIP)

# The ABI may change with every minor version before 1.0.
find_package(Threads REQUIRED)
add_library(tile_public_shared SHARED $<TARGET_OBJECTS:tile_runtime>)
target_link_libraries(tile_public_shared PRIVATE Threads::Threads ${CMAKE_DL_LIBS} m)
target_link_options(tile_public_shared PRIVATE
  -Wl,-z,defs -Wl,--version-script=${CMAKE_SOURCE_DIR}/tools/cmake/tile.map)
set_target_properties(tile_public_shared PROPERTIES OUTPUT_NAME tile LINKER_LANGUAGE C
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/tools/cmake/tile.map LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/package)
install(TARGETS tile_public_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime
  NAMELINK_COMPONENT development)

# libtilekernels: the archive, and a shared library that takes the runtime from the program, which links libtile.so or libtilec.so.
if(TARGET tile_kernels)
  get_target_property(images tile_kernels SOURCES)
  list(FILTER images INCLUDE REGEX "\\.o$")
  set_source_files_properties(${images} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  tile_public_library(tilekernels tile_kernels)
  target_sources(tile_public_tilekernels PRIVATE ${images})
  add_library(tile_public_kernels_shared SHARED $<TARGET_OBJECTS:tile_kernels> ${images})
  foreach(library tile_public_tilekernels tile_public_kernels_shared)
    add_dependencies(${library} tile_kernels)
  endforeach()
  target_link_options(tile_public_kernels_shared PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/tools/cmake/tilekernels.map)
  set_target_properties(tile_public_kernels_shared PROPERTIES OUTPUT_NAME tilekernels LINKER_LANGUAGE C
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    LINK_DEPENDS ${CMAKE_SOURCE_DIR}/tools/cmake/tilekernels.map LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/package)
  install(TARGETS tile_public_kernels_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT kernels
    NAMELINK_COMPONENT development)
  install(FILES stdlib/include/tile_kernels.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
  set(kernels_pc tilekernels)
endif()

# libtile-collectives: the archive, and a shared library that takes the runtime from the program; both load
# libtile-collectives-mpi where there are several processes.
tile_public_library(tile-collectives tile_collectives)
add_library(tile_public_collectives_shared SHARED $<TARGET_OBJECTS:tile_collectives>)
target_link_libraries(tile_public_collectives_shared PRIVATE Threads::Threads ${CMAKE_DL_LIBS} m)
target_link_options(tile_public_collectives_shared PRIVATE
  -Wl,--version-script=${CMAKE_SOURCE_DIR}/tools/cmake/tile-collectives.map)
set_target_properties(tile_public_collectives_shared PROPERTIES OUTPUT_NAME tile-collectives LINKER_LANGUAGE C
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/tools/cmake/tile-collectives.map LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/package)
install(TARGETS tile_public_collectives_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT collectives
  NAMELINK_COMPONENT development)
if(TARGET tile_collectives_mpi)
  install(TARGETS tile_collectives_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi)
endif()

# libtilec.so: runtime and compiler in one shared library, for languages that load libraries (python/). It finds
# libtilec-core.so beside itself.
add_library(tile_public_compiler_shared SHARED ${blake3} ${tune_read} $<TARGET_OBJECTS:tile_runtime>
  $<TARGET_OBJECTS:tilec_thin> $<TARGET_OBJECTS:tile_build_id> $<TARGET_OBJECTS:tile_frontend> $<TARGET_OBJECTS:tile_ir>
  $<TARGET_OBJECTS:tile_jit> $<TARGET_OBJECTS:tile_ref> $<TARGET_OBJECTS:tile_emu>)
target_link_libraries(tile_public_compiler_shared PRIVATE Threads::Threads ${CMAKE_DL_LIBS} m)
target_link_options(tile_public_compiler_shared PRIVATE
  -Wl,-z,defs -Wl,--version-script=${CMAKE_SOURCE_DIR}/tools/cmake/tilec.map)
set_target_properties(tile_public_compiler_shared PROPERTIES OUTPUT_NAME tilec LINKER_LANGUAGE C
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "\$ORIGIN"
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/tools/cmake/tilec.map LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/package)
add_dependencies(tile_public_compiler_shared tilec_thin tilec_core tile_jit)
add_custom_command(TARGET tile_public_compiler_shared POST_BUILD VERBATIM
  COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:tilec_core>
    $<TARGET_FILE_DIR:tile_public_compiler_shared>/$<TARGET_SONAME_FILE_NAME:tilec_core>)
install(TARGETS tile_public_compiler_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT compiler
  NAMELINK_COMPONENT development)
# The tilec that is installed holds no LLVM: it loads libtilec-core.so, so that LLVM is there once, and only when something
# is compiled. Like the libraries it may be moved; in the wheel it lies beside them.
if(TARGET tilec)
  file(RELATIVE_PATH to_libraries ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  add_executable(tile_public_tool $<TARGET_OBJECTS:tilec> $<TARGET_OBJECTS:tile_jit> ${tune_read} codegen/leaf/leaf_of_target.c)
  target_include_directories(tile_public_tool SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  target_link_libraries(tile_public_tool PRIVATE embedded_files tile_ref tile_emu tile_runtime tilec_thin ${JANSSON_ARCHIVE})
  set_target_properties(tile_public_tool PROPERTIES OUTPUT_NAME tilec LINKER_LANGUAGE C
    BUILD_RPATH "\$ORIGIN" INSTALL_RPATH "\$ORIGIN/${to_libraries};\$ORIGIN"
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/package)
  install(TARGETS tile_public_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT compiler)
endif()

# The Python package with these libraries inside: BUILD/wheel/tile-*.whl, and in parts for an index: BUILD/wheels/*.whl.
find_program(PYTHON3 python3)
if(PYTHON3 AND TARGET tile_public_tool)
  set(inside tile_public_compiler_shared tile_public_tool tilec_core $<$<TARGET_EXISTS:tile_public_kernels_shared>:tile_public_kernels_shared>
    $<$<TARGET_EXISTS:tile_launcher>:tile_launcher>)
  set(build_wheel ${CMAKE_COMMAND} -E env TILE_BUILD=${CMAKE_BINARY_DIR} PYTHONDONTWRITEBYTECODE=1 ${PYTHON3} ${CMAKE_SOURCE_DIR}/python/build_wheel.py)
  add_custom_target(wheel VERBATIM COMMENT "the Python package" DEPENDS ${inside} COMMAND ${build_wheel} ${CMAKE_BINARY_DIR}/wheel)
  add_custom_target(wheels VERBATIM COMMENT "the Python package in parts" DEPENDS ${inside} tilec_core_few
    COMMAND ${build_wheel} --parts ${CMAKE_BINARY_DIR}/wheels)
endif()

install(FILES runtime/include/tile.h runtime/include/tile_jit.h runtime/include/tile_xla.h runtime/include/tile_collectives.h codegen/include/tilec.h codegen/include/tilec_report.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(TARGETS tile-opt tile-reduce RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT compiler)

# The library is inside the compiler; this is for reading, and for taking kernels out of it.
install(DIRECTORY stdlib/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tile/stdlib COMPONENT compiler FILES_MATCHING PATTERN "*.tile")
install(DIRECTORY tools/editors/vim/ DESTINATION ${CMAKE_INSTALL_DATADIR}/vim/vimfiles COMPONENT compiler)
install(DIRECTORY tools/editors/vscode/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tile/vscode COMPONENT compiler)
install(DIRECTORY tools/editors/tree-sitter/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tile/tree-sitter COMPONENT compiler)

# What users read, and the examples, in the folders that their links name.
set(documents README.md .github/CONTRIBUTING.md .github/SECURITY.md codegen/README.md codegen/SPIRV.md python/README.md python/tutorial.py test/STATE.md test/bench/README.md)
foreach(pattern examples/*.md examples/*.txt examples/*.tile examples/*.[chy]* examples/pictures/* examples/tutorial/pictures/* frontend/*.md
    runtime/*.md runtime/include/*.h stdlib/*.md stdlib/include/*.h test/bench/results/*.md test/bench/results/*.svg tools/*.md)
  file(GLOB_RECURSE found RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${pattern})
  list(APPEND documents ${found})
endforeach()
list(REMOVE_DUPLICATES documents)
foreach(document ${documents})
  get_filename_component(folder ${document} DIRECTORY)
  install(FILES ${document} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tile/${folder} COMPONENT documents)
endforeach()

if(TARGET tilec)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/package/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT compiler)
  install(FILES tools/completion/tilec.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tilec COMPONENT compiler)
  install(FILES tools/completion/_tilec DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT compiler)
  install(FILES tools/completion/tilec.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT compiler)
endif()

# How a user's program finds libLLVM: the folder of the one that was linked here.
set(TILE_HAS_KERNELS 0)
if(TARGET tile_kernels)
  set(TILE_HAS_KERNELS 1)
endif()
set(TILE_LLVM_LINK "-L${LLVM_LIBRARY_DIR} -lLLVM-${LLVM_VERSION_MAJOR} -l:libstdc++.so.6")
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Tile)
configure_package_config_file(tools/cmake/TileConfig.cmake.in ${CMAKE_BINARY_DIR}/package/TileConfig.cmake
  INSTALL_DESTINATION ${package} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/TileConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/package/TileConfig.cmake ${CMAKE_BINARY_DIR}/package/TileConfigVersion.cmake
  tools/cmake/TileKernels.cmake DESTINATION ${package} COMPONENT development)
# The .pc files find everything from where they lie, wherever the prefix has gone.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(TILE_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
  set(TILE_PC_LIBDIR ${CMAKE_INSTALL_FULL_LIBDIR})
  set(TILE_PC_INCLUDEDIR ${CMAKE_INSTALL_FULL_INCLUDEDIR})
else()
  file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  string(REGEX REPLACE "/$" "" up "${up}")
  set(TILE_PC_PREFIX "\${pcfiledir}/${up}")
  set(TILE_PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  set(TILE_PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
foreach(pc tile tilec tile-collectives ${kernels_pc})
  configure_file(tools/cmake/${pc}.pc.in ${CMAKE_BINARY_DIR}/package/${pc}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/package/${pc}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()

if(NOT TARGET uninstall)
  add_custom_target(uninstall VERBATIM COMMENT "removing what was installed"
    COMMAND ${CMAKE_COMMAND} -D MANIFEST=${CMAKE_BINARY_DIR}/install_manifest.txt
      -P ${CMAKE_SOURCE_DIR}/tools/cmake/uninstall.cmake)
endif()

include(tools/package/packages.cmake)

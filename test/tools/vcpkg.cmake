# The port for vcpkg with stand-ins for vcpkg's functions, on a build that is there:
#
#   cmake -DROOT=SOURCES -DBUILD=BUILD -DCURRENT_PACKAGES_DIR=FOLDER -P vcpkg.cmake
#
# FOLDER becomes what vcpkg would install.
set(CURRENT_PORT_DIR ${ROOT}/tools/package/vcpkg/tile)
set(FEATURES core kernels)
file(STRINGS ${ROOT}/CMakeLists.txt project REGEX "^project\\(")
file(READ ${CURRENT_PORT_DIR}/vcpkg.json manifest)
string(JSON version GET "${manifest}" version)
if(NOT project MATCHES "VERSION ${version} ")
  message(SEND_ERROR "vcpkg.json says ${version}: ${project}")
endif()

function(vcpkg_check_features)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_FEATURE_OPTIONS" "FEATURES")
  while(arg_FEATURES)
    list(POP_FRONT arg_FEATURES feature option)
    string(JSON kind TYPE "${manifest}" features ${feature}) # an error if the manifest lacks it
    list(APPEND options -D${option}=ON)
  endwhile()
  set(${arg_OUT_FEATURE_OPTIONS} ${options} PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  file(REAL_PATH ${ROOT} root)
  file(REAL_PATH ${arg_SOURCE_PATH} source)
  if(NOT source STREQUAL root)
    message(SEND_ERROR "the sources are in ${source}")
  endif()
  file(STRINGS ${BUILD}/CMakeCache.txt cache)
  foreach(option ${arg_OPTIONS})
    string(REGEX REPLACE "^-D([A-Z_]+)=.*" "\\1" name ${option})
    if(NOT cache MATCHES "(^|;)${name}:BOOL=")
      message(SEND_ERROR "the build has no option ${name}")
    endif()
  endforeach()
endfunction()

function(vcpkg_cmake_install)
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${CURRENT_PACKAGES_DIR} --strip OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# A package's files for CMake lie in share/PACKAGE, one folder higher than ours do.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "PACKAGE_NAME;CONFIG_PATH" "")
  file(GLOB files ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/*.cmake)
  file(COPY ${files} DESTINATION ${CURRENT_PACKAGES_DIR}/share/${arg_PACKAGE_NAME})
  file(REMOVE_RECURSE ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH})
  file(GLOB files ${CURRENT_PACKAGES_DIR}/share/${arg_PACKAGE_NAME}/*Config.cmake)
  foreach(file ${files})
    file(READ ${file} text)
    string(REGEX REPLACE "(PACKAGE_PREFIX_DIR \"[^\"]*LIST_DIR}/)(\\.\\./)+" "\\1../../" text "${text}")
    file(WRITE ${file} "${text}")
  endforeach()
endfunction()

function(vcpkg_fixup_pkgconfig)
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  foreach(file ${arg_FILE_LIST})
    file(COPY ${file} DESTINATION ${CURRENT_PACKAGES_DIR}/share/tile)
  endforeach()
endfunction()

include(${CURRENT_PORT_DIR}/portfile.cmake)

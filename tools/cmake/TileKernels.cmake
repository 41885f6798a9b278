# tile_add_kernels(TARGET FILE.tile... [NAME name] [DEVICES cpu sm_90a ...] [TUNE FILE.tune.json] [OPTIONS word...])
# Compiles each file ahead of time: TARGET, an executable or a library with sources, and what links it may include FILE.h
# with the kernels' typed launch functions, link the runtime, and need no compiler at run time. DEVICES default to cpu;
# OPTIONS go to tilec (--const B=128, -I DIR, -g, --check). TUNE: results of tilec tune, by which each launch takes the code
# that is best for its sizes; without it, those in the file beside each source, if there is one. Symbols are named after TARGET and FILE, so that several
# targets of one program may hold the same file. In place of a file there may be a module of the library, std.kernels.gemm, whose
# header is gemm.h. NAME, for one file: the name to use in place of FILE, so that one target may hold a file more than once.
function(tile_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TUNE;NAME" "DEVICES;OPTIONS")
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    message(FATAL_ERROR "tile_add_kernels: ${target} is an INTERFACE library, which holds no objects")
  endif()
  if(NOT arg_DEVICES)
    set(arg_DEVICES cpu)
  endif()
  list(JOIN arg_DEVICES "," devices)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}.kernels)
  file(MAKE_DIRECTORY ${folder})
  set(tune)
  if(arg_TUNE)
    get_filename_component(tune ${arg_TUNE} ABSOLUTE)
    list(APPEND arg_OPTIONS --tune ${tune})
  endif()
  foreach(file ${arg_UNPARSED_ARGUMENTS})
    if(file MATCHES "^std\\.[a-z0-9_.]*$" AND NOT file MATCHES "\\.tile$")
      set(source ${file})
      set(depends)
      string(REGEX REPLACE ".*\\." "" name ${file})
    else()
      get_filename_component(source ${file} ABSOLUTE)
      set(depends ${source})
      get_filename_component(name ${file} NAME_WE)
    endif()
    if(arg_NAME)
      set(name ${arg_NAME})
    endif()
    string(MAKE_C_IDENTIFIER ${target}_${name} symbol)
    set(out ${folder}/${name})
    add_custom_command(OUTPUT ${out}.o ${out}.h
      COMMAND Tile::tilec ${source} -o ${out}.o --header ${out}.h --name ${symbol} --target ${devices} -MD -MF ${out}.d
        ${arg_OPTIONS}
      DEPENDS ${depends} ${tune} Tile::tilec DEPFILE ${out}.d VERBATIM
      COMMENT "tilec ${file}")
    target_sources(${target} PRIVATE ${out}.o ${out}.h)
    set_source_files_properties(${out}.o PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  endforeach()
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${folder}>)
  # As properties: target_link_libraries would have to use the caller's form, with PUBLIC or without.
  foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
    set_property(TARGET ${target} APPEND PROPERTY ${property} Tile::runtime)
  endforeach()
endfunction()

# tile_add_kernels(TARGET FILE.tile... [DEVICES cpu sm_90a ...] [OPTIONS word...])
# Compiles each file ahead of time: TARGET links the kernels, may include FILE.h with their typed launch functions, and
# needs no compiler at run time. DEVICES default to cpu; OPTIONS go to tilec (--const B=128, -I DIR, -g, --check).
function(tile_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEVICES;OPTIONS")
  if(NOT arg_DEVICES)
    set(arg_DEVICES cpu)
  endif()
  list(JOIN arg_DEVICES "," devices)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}.kernels)
  file(MAKE_DIRECTORY ${folder})
  foreach(file ${arg_UNPARSED_ARGUMENTS})
    get_filename_component(source ${file} ABSOLUTE)
    get_filename_component(name ${file} NAME_WE)
    set(out ${folder}/${name})
    add_custom_command(OUTPUT ${out}.o ${out}.h
      COMMAND Tile::tilec ${source} -o ${out}.o --header ${out}.h --target ${devices} -MD -MF ${out}.d ${arg_OPTIONS}
      DEPENDS ${source} Tile::tilec DEPFILE ${out}.d VERBATIM
      COMMENT "tilec ${name}.tile")
    target_sources(${target} PRIVATE ${out}.o ${out}.h)
    set_source_files_properties(${out}.o PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  endforeach()
  target_include_directories(${target} PRIVATE ${folder})
  target_link_libraries(${target} PRIVATE Tile::runtime)
endfunction()

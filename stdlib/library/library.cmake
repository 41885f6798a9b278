# The objects of libtilekernels, from the rows of kernels.def and choices.def.
#
# A kernel's source is its module of kernels/ with one clause more: `instantiate` with each form in each tile of choices.def.
# One object of it for each type and kind of device has the images of all targets of that kind. images_FILE.c lists those of a
# file of functions.
set(library ${CMAKE_CURRENT_SOURCE_DIR}/library)
set(made ${CMAKE_CURRENT_BINARY_DIR}/library)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${library}/kernels.def ${library}/choices.def)

# The rows of a table that begin with `start`: their arguments without quotes, separated by commas.
function(tile_table out file start)
  file(STRINGS ${library}/${file} rows REGEX "^${start}\\(")
  set(found)
  foreach(row IN LISTS rows)
    string(REGEX REPLACE "^[A-Z]+\\(([^)]*)\\).*$" "\\1" row "${row}")
    string(REGEX REPLACE ", *" "," row "${row}")
    string(REPLACE "\"" "" row "${row}")
    list(APPEND found "${row}")
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# The clause of a kernel: each form ("TA=false TB=true|...") in each tile ("BM=16 BN=16") that a kind of device has; none if it has no tile.
function(tile_instances out name kind forms)
  tile_table(choices choices.def "(CHOICE|TILE)")
  set(tiles)
  foreach(row IN LISTS choices)
    string(REPLACE "," ";" row "${row}")
    list(POP_FRONT row kernel of a b c constants)
    if(NOT constants MATCHES "=")
      set(constants "BM=${a} BN=${b} BK=${c}") # a TILE
    endif()
    if(kernel STREQUAL name AND of STREQUAL kind)
      list(APPEND tiles "${constants}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES tiles)
  string(REPLACE "|" ";" forms "${forms}")
  if(NOT forms)
    set(forms " ") # one
  endif()
  set(variants)
  foreach(form IN LISTS forms)
    foreach(tile IN LISTS tiles)
      string(STRIP "${form} ${tile}" variant)
      string(REPLACE " " ", " variant "${variant}")
      string(REPLACE "=" " = " variant "${variant}")
      list(APPEND variants "${variant}")
    endforeach()
  endforeach()
  string(JOIN "; " variants ${variants})
  if(variants)
    set(variants "instantiate(${variants})")
  endif()
  set(${out} "${variants}" PARENT_SCOPE)
endfunction()

# The module's text with the clause behind the kernel's others; its body begins with the first line "{".
function(tile_library_source path module kernel clause)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/kernels/${module}.tile)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(READ ${source} text)
  string(FIND "${text}" "kernel ${kernel}(" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "kernels.def: ${module}.tile has no kernel ${kernel}")
  endif()
  string(SUBSTRING "${text}" 0 ${at} before)
  string(SUBSTRING "${text}" ${at} -1 rest)
  string(FIND "${rest}" "\n{\n" at)
  string(SUBSTRING "${rest}" 0 ${at} head)
  string(SUBSTRING "${rest}" ${at} -1 body)
  file(CONFIGURE OUTPUT ${path} CONTENT "${before}${head}\n    ${clause}${body}" @ONLY)
endfunction()

# The object of one kernel, type and kind of device, tile_image_kernels_KIND_KERNEL_TYPE.
function(tile_library_object out name kernel type constants kind targets)
  string(TOLOWER ${kind} small)
  set(source ${made}/${small}_${name}.tile)
  set(object ${made}/${small}_${name}_${type}.o)
  string(JOIN "," targets ${targets})
  if(constants)
    string(REPLACE " " ";--const;" constants "--const;${constants}")
  endif()
  add_custom_command(OUTPUT ${object} DEPENDS ${source} tilec DEPFILE ${object}.d VERBATIM
    COMMAND $<TARGET_FILE:tilec> ${source} --kernel ${kernel} ${constants} --target ${targets} -Wno-unused --cache=off
      --tune off --name kernels_${small}_${name}_${type} -o ${object} -MD -MF ${object}.d
    COMMENT "${name} of ${type} for ${targets}")
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  set(${out} ${object} PARENT_SCOPE)
endfunction()

# The list of a file's images: a source of C.
function(tile_library_list path file declarations elements)
  file(CONFIGURE OUTPUT ${path} @ONLY CONTENT "/* Written by library.cmake: the images of ${file}.c. */
#include \"stdlib/library/library.h\"

${declarations}
const TlLibImage tl_lib_${file}_images[] = {
${elements}    {.image = NULL}};
")
endfunction()

# The objects of all kernels and the lists of them.
function(tile_library_images out)
  list(TRANSFORM TILE_KERNELS_LEVELS PREPEND "cpu:" OUTPUT_VARIABLE CPU_targets)
  set(REF_targets ref)
  set(GPU_targets ${TILE_KERNELS_GPUS})
  tile_table(kernels kernels.def KERNEL)
  tile_table(types kernels.def TYPE)
  tile_table(files kernels.def SOURCE)
  set(objects)
  foreach(row IN LISTS kernels)
    set(forms)
    string(REPLACE "," ";" row "${row}")
    list(POP_FRONT row name file module kernel forms)
    foreach(kind CPU REF GPU)
      if(NOT ${kind}_targets)
        continue()
      endif()
      string(TOLOWER ${kind} small)
      tile_instances(clause ${name} ${kind} "${forms}")
      if(NOT clause)
        continue()
      endif()
      tile_library_source(${made}/${small}_${name}.tile ${module} ${kernel} "${clause}")
      foreach(pair IN LISTS types)
        string(REPLACE "," ";" pair "${pair}")
        list(POP_FRONT pair of type constants)
        if(of STREQUAL name AND type IN_LIST TILE_KERNELS_TYPES)
          tile_library_object(object ${name} ${kernel} ${type} "${constants}" ${kind} "${${kind}_targets}")
          list(APPEND objects ${object})
          set(id kernels_${small}_${name}_${type})
          string(APPEND declared_${file} "extern const unsigned char tile_image_${id}[];\nextern const size_t tile_size_${id};\n")
          string(APPEND listed_${file} "    {TL_LIB_${name}, TL_LIB_${kind}, TILE_${type}, tile_image_${id}, &tile_size_${id}},\n")
        endif()
      endforeach()
    endforeach()
  endforeach()
  foreach(file IN LISTS files)
    tile_library_list(${made}/images_${file}.c ${file} "${declared_${file}}" "${listed_${file}}")
    list(APPEND objects ${made}/images_${file}.c)
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()

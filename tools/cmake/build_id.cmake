# cmake -D OUT=FILE -D LLVM=19.1.7 -D "ARCHIVES=a;b" -P build_id.cmake: what identifies this build of the compiler, as
# a C file: a hash of the archives it is linked from and of LLVM's version. It is a part of each key of the cache.
set(all "LLVM ${LLVM}")
foreach(archive ${ARCHIVES})
  file(SHA256 ${archive} one)
  string(APPEND all " ${one}")
endforeach()
string(SHA256 id "${all}")
file(WRITE ${OUT} "extern const char tl_build_id[];\nconst char tl_build_id[] = \"${id}\";\n")

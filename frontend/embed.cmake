# Writes stdlib_embed.c: every stdlib/NAME.tile and stdlib/kernels/NAME.tile as bytes, in a table sorted by the names of
# the modules, std.NAME and std.kernels.NAME.
# cmake -DOUT=FILE -DDIR=stdlib -P embed.cmake
file(GLOB files RELATIVE ${DIR} ${DIR}/*.tile ${DIR}/kernels/*.tile)
list(SORT files)
set(text "/* Made by frontend/embed.cmake from stdlib/. */\n#include \"frontend/stdlib.h\"\n#include <string.h>\n\n")
set(rows "")
foreach(file ${files})
  string(REGEX REPLACE "\\.tile$" "" module ${file})
  string(MAKE_C_IDENTIFIER ${module} name)
  string(REPLACE "/" "." module std.${module})
  file(READ ${DIR}/${file} hex HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  file(SIZE ${DIR}/${file} size)
  string(APPEND text "static const unsigned char text_${name}[] = {\n${hex}0};\n")
  string(APPEND rows "    {\"${module}\", (const char *)text_${name}, ${size}},\n")
endforeach()
string(APPEND text "
static const struct { const char *name, *text; size_t size; } modules[] = {
${rows}    {NULL, NULL, 0},
};

const char *tl_stdlib_find(const char *module_name, size_t *out_size)
{
    for (size_t i = 0; modules[i].name; i++) {
        if (strcmp(modules[i].name, module_name)) continue;
        *out_size = modules[i].size;
        return modules[i].text;
    }
    return NULL;
}

const char *tl_stdlib_name(size_t i)
{
    const size_t count = sizeof modules / sizeof *modules; /* with the row that ends them */
    return i < count ? modules[i].name : NULL;
}
")
file(WRITE ${OUT} "${text}")

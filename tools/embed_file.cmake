# Writes a file as the bytes of a C string. cmake -D OUT=F.c -D FILE=F -D NAME=IDENTIFIER -P embed_file.cmake
get_filename_component(from ${FILE} NAME)
file(READ ${FILE} hex HEX)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
file(WRITE ${OUT} "/* Made by embed_file.cmake from ${from}. */
extern const unsigned char ${NAME}[];
const unsigned char ${NAME}[] = {
${hex}0};
")

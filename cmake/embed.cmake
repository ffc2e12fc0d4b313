# Files that become part of the program: a C file with a table of them, made at build time.
#
#   anytime_embed(made.c at_page_file at_page_files report/page/page.h FILES ... [STEMS] [SIZES])
#
# A row is {"name", bytes}, with STEMS by the name without its last suffix, with SIZES {.., size}; a
# zero byte follows each file. ARRAY_count is how many there are.

if(CMAKE_SCRIPT_MODE_FILE)
  set(arrays "")
  set(rows "")
  set(number 0)
  string(REPEAT "0x..," 18 line)
  foreach(path ${FILES})
    get_filename_component(name ${path} ${NAMES})
    file(READ ${path} bytes HEX)
    string(LENGTH "${bytes}" digits)
    math(EXPR size "${digits} / 2")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "(${line})" "\\1\n    " bytes "${bytes}")
    # Arrays of bytes, because the language does not promise strings of any length.
    string(APPEND arrays "static const unsigned char file_${number}[] = {\n    ${bytes}0};\n")
    string(APPEND rows "    {\"${name}\", (const char *)file_${number}")
    if(SIZES)
      string(APPEND rows ", ${size}")
    endif()
    string(APPEND rows "},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(WRITE ${OUT} "/* Made by cmake/embed.cmake. */\n#include \"${HEADER}\"\n\n${arrays}\n"
    "const ${TYPE} ${ARRAY}[] = {\n${rows}};\nconst size_t ${ARRAY}_count = ${number};\n")
  return()
endif()

set(embed_script ${CMAKE_CURRENT_LIST_FILE})

function(anytime_embed out type array header)
  cmake_parse_arguments(PARSE_ARGV 4 embed "STEMS;SIZES" "" "FILES")
  set(names NAME)
  if(embed_STEMS)
    set(names NAME_WLE)
  endif()
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${embed_FILES}" -DOUT=${out} -DTYPE=${type} -DARRAY=${array}
      -DHEADER=${header} -DNAMES=${names} -DSIZES=${embed_SIZES} -P ${embed_script}
    DEPENDS ${embed_FILES} ${embed_script}
    COMMENT "Files of ${array}" VERBATIM)
endfunction()

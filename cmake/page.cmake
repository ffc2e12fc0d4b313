# What pages are made of (src/report/page/*, and dygraphs from its package) becomes part of the
# program: at_page_files in a C file made at build time. A new file there needs nothing else.

set(page_c ${PROJECT_BINARY_DIR}/page.c)

if(CMAKE_SCRIPT_MODE_FILE)
  # cmake -DFILES=... -DOUT=... -P page.cmake: writes the C file.
  set(texts "")
  set(rows "")
  set(number 0)
  foreach(path ${FILES})
    get_filename_component(name ${path} NAME)
    file(READ ${path} bytes HEX)
    string(LENGTH "${bytes}" digits)
    math(EXPR size "${digits} / 2")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND texts "static const unsigned char file_${number}[] = {\n${bytes} 0};\n")
    string(APPEND rows "    {\"${name}\", (const char *)file_${number}, ${size}},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(WRITE ${OUT} "/* Made from src/report/page/ and dygraphs by cmake/page.cmake. */\n"
    "#include \"report/page.h\"\n\n${texts}\n"
    "const at_page_file at_page_files[] = {\n${rows}};\n"
    "const size_t at_page_files_count = ${number};\n")
  return()
endif()

file(GLOB page_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/report/page/*)
list(APPEND page_files ${DYGRAPHS}/dygraph.min.js ${DYGRAPHS}/dygraph.min.css)
add_custom_command(OUTPUT ${page_c}
  COMMAND ${CMAKE_COMMAND} "-DFILES=${page_files}" -DOUT=${page_c} -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${page_files} ${CMAKE_CURRENT_LIST_FILE}
  COMMENT "Pages" VERBATIM)

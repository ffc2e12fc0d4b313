# The nets of models/*.net become part of the program: at_net_builtins in a C file made at build
# time. A new model is a new file there, and nothing else.

set(models_c ${PROJECT_BINARY_DIR}/models.c)

if(CMAKE_SCRIPT_MODE_FILE)
  # cmake -DMODELS=... -DOUT=... -P models.cmake: writes the C file. Texts are arrays of bytes,
  # because the language does not promise strings of any length.
  set(texts "")
  set(rows "")
  set(number 0)
  foreach(path ${MODELS})
    get_filename_component(name ${path} NAME_WLE)
    file(READ ${path} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
    string(REPEAT "......," 12 line)
    string(REGEX REPLACE "(${line})" "\\1\n    " bytes "${bytes}")
    string(APPEND texts "static const char text_${number}[] = {\n    ${bytes}'\\0'};\n")
    string(APPEND rows "    {\"${name}\", text_${number}},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(WRITE ${OUT} "/* Made from the files in models/ by cmake/models.cmake. */\n"
    "#include \"learn/net.h\"\n\n${texts}\n"
    "const at_net_builtin at_net_builtins[] = {\n${rows}};\n"
    "const size_t at_net_builtins_count = ${number};\n")
  return()
endif()

file(GLOB models CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/models/*.net)
list(TRANSFORM models REPLACE "\\.net$" "") # so that alexnet comes before alexnet-256
list(SORT models COMPARE NATURAL)
list(TRANSFORM models APPEND ".net")
add_custom_command(OUTPUT ${models_c}
  COMMAND ${CMAKE_COMMAND} "-DMODELS=${models}" -DOUT=${models_c} -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${models} ${CMAKE_CURRENT_LIST_FILE}
  COMMENT "Nets of models/" VERBATIM)

# Protocol buffers of other programs (TensorBoard, ONNX): src/LAYER/**/NAME.proto becomes
# NAME.pb-c.h and NAME.pb-c.c at build time. Warnings are off for this generated code.

function(anytime_messages layer)
  file(GLOB_RECURSE protos CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${layer}/*.proto)
  set(folder ${PROJECT_BINARY_DIR}/proto/${layer})
  file(MAKE_DIRECTORY ${folder})
  foreach(proto ${protos})
    get_filename_component(name ${proto} NAME_WE)
    get_filename_component(home ${proto} DIRECTORY)
    set(generated ${folder}/${name}.pb-c.c)
    add_custom_command(OUTPUT ${generated} ${folder}/${name}.pb-c.h
      COMMAND ${PROTOC_C} --c_out=${folder} --proto_path=${home} ${proto}
      DEPENDS ${proto}
      COMMENT "Generating ${name}.pb-c.c" VERBATIM)
    set_source_files_properties(${generated} PROPERTIES COMPILE_OPTIONS -w)
    target_sources(at_${layer} PRIVATE ${generated} ${folder}/${name}.pb-c.h)
  endforeach()
  target_include_directories(at_${layer} SYSTEM PUBLIC ${folder})
endfunction()

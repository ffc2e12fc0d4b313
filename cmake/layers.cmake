# One static library per layer, including its subfolders. A layer links only the layers it may
# include (ARCHITECTURE.md), so a forbidden call fails at link time as well as in tools/lint.

add_library(flags INTERFACE)
target_include_directories(flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(flags INTERFACE _GNU_SOURCE ANYTIME_VERSION="${PROJECT_VERSION}")
# No -ffast-math: it breaks NaN checks and bit-for-bit reproducibility. No contraction either: the
# same source must give the same bits whether or not the compiler could use an FMA.
# Messages of assertions name files from the project's root, wherever it was built.
target_compile_options(flags INTERFACE -ffp-contract=off -fno-math-errno
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wswitch-enum
  -Wstrict-prototypes -Wmissing-prototypes -Wvla
  # assert(!"reason") is meant.
  $<$<C_COMPILER_ID:Clang>:-Wno-string-conversion>
  $<$<BOOL:${ANYTIME_WERROR}>:-Werror>)
if(ANYTIME_COVERAGE)
  # Counters are updated atomically: processes and threads share them.
  target_compile_options(flags INTERFACE --coverage -fprofile-update=atomic)
  add_library(coverage_exit STATIC ${PROJECT_SOURCE_DIR}/tests/coverage/exit.c)
  target_link_libraries(flags INTERFACE coverage_exit)
  target_link_options(flags INTERFACE --coverage LINKER:--wrap=_exit)
endif()
if(ANYTIME_SANITIZE)
  target_compile_options(flags INTERFACE
    -fsanitize=${ANYTIME_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(flags INTERFACE -fsanitize=${ANYTIME_SANITIZE})
  foreach(kind ADDRESS THREAD) # as gcc says it; tests ask for it
    string(TOLOWER ${kind} lower)
    if(ANYTIME_SANITIZE MATCHES ${lower} AND CMAKE_C_COMPILER_ID MATCHES Clang)
      target_compile_definitions(flags INTERFACE __SANITIZE_${kind}__=1)
    endif()
  endforeach()
  if(ANYTIME_SANITIZE MATCHES thread AND CMAKE_C_COMPILER_ID STREQUAL GNU)
    # TSan ignores fences. Ours order memory between processes, which it does not track anyway.
    target_compile_options(flags INTERFACE -Wno-tsan)
  endif()
endif()

function(anytime_layer name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.c)
  foreach(pattern ${anytime_excluded})
    list(FILTER sources EXCLUDE REGEX ${pattern})
  endforeach()
  add_library(at_${name} STATIC ${sources})
  target_link_libraries(at_${name} PUBLIC flags ${ARGN})
  set_property(GLOBAL APPEND PROPERTY anytime_layers ${name})
endfunction()

anytime_layer(base dep_crypto dep_jansson m)
anytime_layer(step at_base)
anytime_layer(pace at_base)
include(cmake/embed.cmake)
include(cmake/models.cmake)
anytime_layer(learn at_base dep_openblas dep_dnnl)
target_sources(at_learn PRIVATE ${models_c})
# The thread sanitizer does not see how OpenMP synchronizes, so there winograd.c has one thread.
set(winograd_flags ${OpenMP_C_FLAGS})
if(ANYTIME_SANITIZE MATCHES thread)
  set(winograd_flags -Wno-unknown-pragmas -Wno-unused-parameter)
endif()
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/learn/engines/winograd.c PROPERTIES
  COMPILE_OPTIONS "${winograd_flags}")
# Optimizing these with the instrumentation of a fuzzer takes minutes, and fuzzers do not need it.
if(ANYTIME_FUZZ)
  foreach(name avx2 avx2_conv avx2_pool winograd_avx2 winograd_avx512)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/learn/engines/${name}.c PROPERTIES
      COMPILE_OPTIONS -O0)
  endforeach()
endif()
anytime_layer(data at_base dep_zlib dep_lzma dep_png dep_jpeg)
include(cmake/proto.cmake)
include(cmake/page.cmake)
anytime_layer(message at_base at_step)
anytime_layer(net at_base dep_ssl dep_crypto)
anytime_layer(record at_base at_step dep_protobuf_c)
anytime_messages(record)
# Buffers of the layers that parse files are small, see base/buffer.h.
if(ANYTIME_FUZZ)
  foreach(layer data pace record)
    target_compile_definitions(at_${layer} PRIVATE ANYTIME_FUZZ)
  endforeach()
endif()
anytime_layer(report at_base at_record)
target_sources(at_report PRIVATE ${page_c})
anytime_layer(serve at_base at_record at_report dep_microhttpd)
anytime_layer(task at_base at_step at_learn)
anytime_layer(model_io at_base at_step at_learn at_record at_task dep_protobuf_c)
anytime_messages(model_io)
anytime_layer(world at_base at_step at_pace at_learn at_data at_message at_net at_record
  at_task at_model_io dep_mpi)
anytime_layer(advise at_base at_step at_pace at_data at_record at_report at_task at_world)

file(GLOB_RECURSE cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/*.c)
list(REMOVE_ITEM cli_sources ${PROJECT_SOURCE_DIR}/src/cli/main.c
  ${PROJECT_SOURCE_DIR}/src/cli/library.c)
include(cmake/header.cmake)
include(cmake/commit.cmake)
add_library(at_cli STATIC ${cli_sources} ${header_c} ${commit_c})
add_dependencies(at_cli commit)
target_link_libraries(at_cli PUBLIC at_world at_report at_serve at_advise)
# What `anytime doctor` reports about the build.
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
string(STRIP "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${build_type}}" build_flags)
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/cli/verbs/doctor.c PROPERTIES
  COMPILE_DEFINITIONS
  "ANYTIME_FLAGS=\"${build_flags}\";ANYTIME_SANITIZERS=\"${ANYTIME_SANITIZE}\"")
# Which optional libraries there are.
set(optional_parts "")
foreach(name mpi dnnl microhttpd)
  list(APPEND optional_parts ANYTIME_HAS_${name}=${anytime_has_${name}})
endforeach()
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/cli/parts.c PROPERTIES
  COMPILE_DEFINITIONS "${optional_parts}")
add_executable(anytime ${PROJECT_SOURCE_DIR}/src/cli/main.c)
target_link_libraries(anytime PRIVATE at_cli)
# The loader resolves symbols in the order of libraries, and two thirds of all relocations are those
# of OpenBLAS with itself: named first, it saves the start a sixth of its instructions.
target_link_options(anytime BEFORE PRIVATE
  "SHELL:-Wl,--push-state,--no-as-needed ${openblas_LIBRARY} -Wl,--pop-state")

# The library: everything except main(); only the functions of anytime.h are exported.
add_library(libanytime SHARED ${PROJECT_SOURCE_DIR}/src/cli/library.c)
target_link_libraries(libanytime PRIVATE at_cli)
target_link_options(libanytime PRIVATE
  "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/libanytime.map")
# Nothing in the library itself calls these; each name brings its file along.
foreach(name at_seat_join at_seat_next at_seat_state_put)
  target_link_options(libanytime PRIVATE "LINKER:--undefined=${name}")
endforeach()
set_target_properties(libanytime PROPERTIES OUTPUT_NAME anytime EXPORT_NAME anytime
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/libanytime.map)
# Otherwise CMake reserves room in the rpath, and the loader takes its empty end for the current
# folder, where anybody may have put a library.
set_target_properties(anytime libanytime PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
target_include_directories(libanytime PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)

file(GLOB example_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c)
foreach(source ${example_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(example_${name} ${source})
  target_link_libraries(example_${name} PRIVATE libanytime flags m)
endforeach()

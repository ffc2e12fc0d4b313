# Finds every library, reports what was found, and names the Debian package of a missing one.

function(anytime_missing what package)
  message(FATAL_ERROR
    "${what} not found. Install it with: apt-get install ${package} (or run 'make deps').")
endfunction()

function(anytime_need name package header library_names)
  find_path(${name}_INCLUDE NAMES ${header})
  find_library(${name}_LIBRARY NAMES ${library_names})
  if(NOT ${name}_INCLUDE OR NOT ${name}_LIBRARY)
    anytime_missing(${name} ${package})
  endif()
  message(STATUS "✓ ${name}: ${${name}_LIBRARY}")
  add_library(dep_${name} INTERFACE)
  target_include_directories(dep_${name} SYSTEM INTERFACE ${${name}_INCLUDE})
  target_link_libraries(dep_${name} INTERFACE ${${name}_LIBRARY})
  set(dependency_names ${dependency_names} ${name} PARENT_SCOPE)
endfunction()

# An optional library. ANYTIME_OPTION=OFF, or its absence, builds without it: dep_NAME is empty,
# anytime_has_NAME is 0, and the sources that match `files` are replaced by `absent`, which refuses
# what needs the library. The remaining arguments are folders to look in.
function(anytime_optional name option package header library files absent)
  option(ANYTIME_${option} "use ${name} if it is there" ON)
  set(has 0)
  if(ANYTIME_${option})
    find_path(${name}_INCLUDE NAMES ${header} PATHS ${ARGN} PATH_SUFFIXES include)
    find_library(${name}_LIBRARY NAMES ${library} PATHS ${ARGN} PATH_SUFFIXES lib)
    if(${name}_INCLUDE AND ${name}_LIBRARY)
      set(has 1)
    endif()
  endif()
  add_library(dep_${name} INTERFACE)
  if(has)
    message(STATUS "✓ ${name}: ${${name}_LIBRARY}")
    target_include_directories(dep_${name} SYSTEM INTERFACE ${${name}_INCLUDE})
    target_link_libraries(dep_${name} INTERFACE ${${name}_LIBRARY})
    set(dependency_names ${dependency_names} ${name} PARENT_SCOPE)
    set(files ${absent})
  elseif(ANYTIME_${option})
    message(STATUS "✗ ${name}: not found, built without it (apt-get install ${package})")
  else()
    message(STATUS "✗ ${name}: built without it (ANYTIME_${option}=OFF)")
  endif()
  set(anytime_has_${name} ${has} PARENT_SCOPE)
  set(anytime_excluded ${anytime_excluded} ${files} PARENT_SCOPE)
endfunction()

if(BUILD_TESTING)
  anytime_need(cmocka libcmocka-dev cmocka.h cmocka)
endif()

set(dependency_names "") # of the libraries a static libanytime needs, for cmake/install.cmake
set(anytime_excluded "") # sources that are not built here

anytime_need(zlib zlib1g-dev zlib.h z)
anytime_need(lzma liblzma-dev lzma.h lzma)
anytime_need(png libpng-dev png.h png)
anytime_need(jpeg libjpeg-dev jpeglib.h jpeg)
# Not find_package(dnnl): its configuration requires OpenCL, which nothing here needs.
anytime_optional(dnnl ONEDNN libdnnl-dev dnnl.h dnnl
  "/engines/(onednn|onednn_plan|onednn_weight_gemm|winograd)[.]c$" "/onednn_absent[.]c$")
if(anytime_has_dnnl)
  # oneDNN takes its number of threads from OpenMP; of our own code only winograd.c uses it.
  find_package(OpenMP COMPONENTS C)
  if(NOT OpenMP_C_FOUND)
    anytime_missing("OpenMP of ${CMAKE_C_COMPILER_ID}" "libomp-dev for clang, libgomp1 for gcc")
  endif()
  target_link_libraries(dep_dnnl INTERFACE ${OpenMP_C_LIBRARIES})
endif()
anytime_need(jansson libjansson-dev jansson.h jansson)
anytime_need(crypto libssl-dev openssl/sha.h crypto)
anytime_need(ssl libssl-dev openssl/ssl.h ssl)
anytime_optional(microhttpd MICROHTTPD libmicrohttpd-dev microhttpd.h microhttpd
  "/serve/(server|responses|stream)[.]c$" "/server_absent[.]c$")
anytime_need(protobuf_c libprotobuf-c-dev protobuf-c/protobuf-c.h protobuf-c)
find_program(PROTOC_C NAMES protoc-c)
if(NOT PROTOC_C)
  anytime_missing(protoc-c protobuf-c-compiler)
endif()
message(STATUS "✓ protoc-c: ${PROTOC_C}")

# Open MPI's library; the launcher is detected at run time. Debian has it below a folder of its own.
set(prefixes ${CMAKE_PREFIX_PATH} ${CMAKE_SYSTEM_PREFIX_PATH})
list(TRANSFORM prefixes APPEND /lib/${CMAKE_C_LIBRARY_ARCHITECTURE}/openmpi
  OUTPUT_VARIABLE openmpi_folders)
anytime_optional(mpi MPI libopenmpi-dev mpi.h mpi
  "/world/mpi/" "/mpi_absent[.]c$" ${openmpi_folders})
list(APPEND dependency_names openblas)

# Charts in HTML pages. The files are embedded in the program and never copied into the tree.
find_path(DYGRAPHS NAMES dygraph.min.js PATHS ${prefixes}
  PATH_SUFFIXES share/javascript/dygraphs share/dygraphs)
if(NOT DYGRAPHS)
  anytime_missing(dygraphs libjs-dygraphs)
endif()
message(STATUS "✓ dygraphs: ${DYGRAPHS}")

# All OpenBLAS variants share one SONAME, and the default one starts threads before main(). The
# serial variant is therefore linked by its full path and located through the rpath at run time.
# Elsewhere than on Debian any OpenBLAS is taken; `anytime doctor` says if it has threads.
find_path(openblas_INCLUDE NAMES cblas.h PATHS ${prefixes}
  PATH_SUFFIXES include/${CMAKE_C_LIBRARY_ARCHITECTURE}/openblas-serial NO_DEFAULT_PATH)
find_library(openblas_LIBRARY NAMES openblas PATHS ${prefixes}
  PATH_SUFFIXES lib/${CMAKE_C_LIBRARY_ARCHITECTURE}/openblas-serial NO_DEFAULT_PATH)
find_path(openblas_INCLUDE NAMES cblas.h PATH_SUFFIXES openblas)
find_library(openblas_LIBRARY NAMES openblas)
if(NOT openblas_INCLUDE OR NOT openblas_LIBRARY)
  anytime_missing("serial OpenBLAS" libopenblas-serial-dev)
endif()
message(STATUS "✓ openblas (serial): ${openblas_LIBRARY}")
add_library(dep_openblas INTERFACE)
target_include_directories(dep_openblas SYSTEM INTERFACE ${openblas_INCLUDE})
target_link_libraries(dep_openblas INTERFACE ${openblas_LIBRARY})
if(openblas_LIBRARY MATCHES "/openblas-serial/")
  get_filename_component(openblas_folder ${openblas_LIBRARY} DIRECTORY)
  target_link_options(dep_openblas INTERFACE
    "LINKER:-rpath,${openblas_folder}" "LINKER:--disable-new-dtags")
endif()

# Finds every library, reports what was found, and names the Debian package of a missing one.

function(anytime_missing what package)
  message(FATAL_ERROR
    "${what} not found. Install it with: apt-get install ${package} (or run 'make deps').")
endfunction()

function(anytime_need name package header library_names)
  find_path(${name}_INCLUDE NAMES ${header} ${ARGN})
  find_library(${name}_LIBRARY NAMES ${library_names} ${ARGN})
  if(NOT ${name}_INCLUDE OR NOT ${name}_LIBRARY)
    anytime_missing(${name} ${package})
  endif()
  message(STATUS "✓ ${name}: ${${name}_LIBRARY}")
  add_library(dep_${name} INTERFACE)
  target_include_directories(dep_${name} SYSTEM INTERFACE ${${name}_INCLUDE})
  target_link_libraries(dep_${name} INTERFACE ${${name}_LIBRARY})
  set(dependency_names ${dependency_names} ${name} PARENT_SCOPE)
endfunction()

if(BUILD_TESTING)
  anytime_need(cmocka libcmocka-dev cmocka.h cmocka)
endif()

set(dependency_names "") # of the libraries a static libanytime needs, for cmake/install.cmake

anytime_need(zlib zlib1g-dev zlib.h z)
anytime_need(lzma liblzma-dev lzma.h lzma)
anytime_need(png libpng-dev png.h png)
anytime_need(jpeg libjpeg-dev jpeglib.h jpeg)
# Not find_package(dnnl): its configuration requires OpenCL, which nothing here needs.
anytime_need(dnnl libdnnl-dev dnnl.h dnnl)
# oneDNN takes its number of threads from OpenMP. Our own code does not use OpenMP.
find_package(OpenMP REQUIRED COMPONENTS C)
target_link_libraries(dep_dnnl INTERFACE ${OpenMP_C_LIBRARIES})
anytime_need(jansson libjansson-dev jansson.h jansson)
anytime_need(crypto libssl-dev openssl/sha.h crypto)
anytime_need(ssl libssl-dev openssl/ssl.h ssl)
anytime_need(microhttpd libmicrohttpd-dev microhttpd.h microhttpd)
anytime_need(protobuf_c libprotobuf-c-dev protobuf-c/protobuf-c.h protobuf-c)
find_program(PROTOC_C NAMES protoc-c)
if(NOT PROTOC_C)
  anytime_missing(protoc-c protobuf-c-compiler)
endif()
message(STATUS "✓ protoc-c: ${PROTOC_C}")

# Open MPI's library; the launcher is detected at run time.
find_path(mpi_INCLUDE NAMES mpi.h PATHS /usr/lib/${CMAKE_C_LIBRARY_ARCHITECTURE}/openmpi/include)
find_library(mpi_LIBRARY NAMES mpi PATHS /usr/lib/${CMAKE_C_LIBRARY_ARCHITECTURE}/openmpi/lib)
if(NOT mpi_INCLUDE OR NOT mpi_LIBRARY)
  anytime_missing("Open MPI" libopenmpi-dev)
endif()
message(STATUS "✓ mpi: ${mpi_LIBRARY}")
add_library(dep_mpi INTERFACE)
target_include_directories(dep_mpi SYSTEM INTERFACE ${mpi_INCLUDE})
target_link_libraries(dep_mpi INTERFACE ${mpi_LIBRARY})
list(APPEND dependency_names mpi openblas)

# Charts in HTML pages. The files are embedded in the program and never copied into the tree.
find_path(DYGRAPHS NAMES dygraph.min.js PATHS /usr/share/javascript/dygraphs)
if(NOT DYGRAPHS)
  anytime_missing(dygraphs libjs-dygraphs)
endif()
message(STATUS "✓ dygraphs: ${DYGRAPHS}")

# All OpenBLAS variants share one SONAME, and the default one starts threads before main(). The
# serial variant is therefore linked by its full path and located through the rpath at run time.
# Elsewhere than on Debian any OpenBLAS is taken; `anytime doctor` says if it has threads.
find_path(openblas_INCLUDE NAMES cblas.h
  PATHS /usr/include/${CMAKE_C_LIBRARY_ARCHITECTURE}/openblas-serial NO_DEFAULT_PATH)
find_library(openblas_LIBRARY NAMES openblas
  PATHS /usr/lib/${CMAKE_C_LIBRARY_ARCHITECTURE}/openblas-serial NO_DEFAULT_PATH)
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

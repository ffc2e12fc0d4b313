# What `make install` installs, and the packages of `make deb`.
#
# The program has its models and pages inside, so it runs from anywhere. It prints its manual pages
# and completions itself, at build time.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# ---- program, library, header ----

install(TARGETS anytime RUNTIME COMPONENT program)
install(TARGETS libanytime EXPORT anytime
  LIBRARY COMPONENT program NAMELINK_COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/include/anytime.h TYPE INCLUDE COMPONENT development)

# The static library is that of all layers in one archive; anytime.pc lists what it needs.
get_property(layers GLOBAL PROPERTY anytime_layers)
list(APPEND layers cli)
set(archive ${PROJECT_BINARY_DIR}/libanytime.a)
set(script "create ${archive}\n")
set(layer_targets "")
foreach(layer ${layers})
  string(APPEND script "addlib $<TARGET_FILE:at_${layer}>\n")
  list(APPEND layer_targets at_${layer})
endforeach()
string(APPEND script "addlib $<TARGET_FILE:libanytime_entry>\nsave\nend\n")
add_library(libanytime_entry STATIC ${PROJECT_SOURCE_DIR}/src/cli/library.c)
target_link_libraries(libanytime_entry PRIVATE flags)
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/libanytime.mri CONTENT "${script}")
add_custom_command(OUTPUT ${archive}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
  COMMAND ${CMAKE_AR} -M < ${PROJECT_BINARY_DIR}/libanytime.mri
  DEPENDS ${layer_targets} libanytime_entry ${PROJECT_BINARY_DIR}/libanytime.mri
  COMMENT "Collecting libanytime.a")
add_custom_target(libanytime_static ALL DEPENDS ${archive})
install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)

# ---- pkg-config and find_package(anytime) ----

set(private_libraries "")
foreach(name ${dependency_names})
  string(APPEND private_libraries " ${${name}_LIBRARY}")
endforeach()
if(openblas_folder) # found by its rpath: the loader would take another variant
  string(APPEND private_libraries " -Wl,-rpath,${openblas_folder}")
endif()
file(RELATIVE_PATH prefix_from_here /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/anytime.pc.in ${PROJECT_BINARY_DIR}/anytime.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/anytime.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT development)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/anytime)
install(EXPORT anytime NAMESPACE anytime:: DESTINATION ${package_folder} COMPONENT development
  FILE anytimeConfig.cmake)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/anytimeConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/anytimeConfigVersion.cmake DESTINATION ${package_folder}
  COMPONENT development)

# ---- manual pages and completions ----

function(anytime_text out)
  add_custom_command(OUTPUT ${out} COMMAND anytime ${ARGN} > ${out} DEPENDS anytime VERBATIM)
endfunction()

set(texts "")
set(manual ${PROJECT_BINARY_DIR}/man)
file(MAKE_DIRECTORY ${manual})
file(STRINGS ${PROJECT_SOURCE_DIR}/src/cli/verbs/verbs.c verbs REGEX "^    {\"[a-z]+\",")
list(TRANSFORM verbs REPLACE "^    {\"([a-z]+)\".*" "\\1")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/src/cli/verbs/verbs.c)
anytime_text(${manual}/anytime.1 manual)
anytime_text(${manual}/anytime.h.3 manual anytime.h)
set(pages ${manual}/anytime.1)
foreach(verb ${verbs})
  anytime_text(${manual}/anytime-${verb}.1 manual ${verb})
  list(APPEND pages ${manual}/anytime-${verb}.1)
endforeach()
anytime_text(${PROJECT_BINARY_DIR}/completion.bash completion bash)
anytime_text(${PROJECT_BINARY_DIR}/completion.zsh completion zsh)
add_custom_target(texts ALL DEPENDS ${pages} ${manual}/anytime.h.3
  ${PROJECT_BINARY_DIR}/completion.bash ${PROJECT_BINARY_DIR}/completion.zsh)

install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES ${manual}/anytime.h.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3
  COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/completion.bash RENAME anytime COMPONENT program
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${PROJECT_BINARY_DIR}/completion.zsh RENAME _anytime COMPONENT program
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)

# ---- Python, models, examples, documentation ----

# Debian's Python looks there below /usr; elsewhere PYTHONPATH names the folder.
set(ANYTIME_PYTHON_DIR lib/python3/dist-packages CACHE STRING "where the Python package goes")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/anytime DESTINATION ${ANYTIME_PYTHON_DIR}
  COMPONENT python PATTERN __pycache__ EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models DESTINATION ${CMAKE_INSTALL_DATADIR}/anytime
  COMPONENT program FILES_MATCHING PATTERN "*.net")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
  COMPONENT development PATTERN __pycache__ EXCLUDE)
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(FILES LICENSE RENAME copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)

# ---- Debian packages ----

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "the authors of anytime <anytime@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "distributed SGD that tolerates slow and failing workers")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program development python)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME anytime)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS libopenblas0-serial) # found by rpath; others have threads
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "gnuplot-nox, openmpi-bin, dataset-fashion-mnist")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "npm, curl") # which download data sets
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libanytime-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "anytime (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-anytime)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "anytime (= ${PROJECT_VERSION}), python3, python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS python3-torch)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
include(CPack)

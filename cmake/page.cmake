# What pages are made of (src/report/page/*, and dygraphs from its package) becomes part of the
# program (at_page_files). A new file there needs nothing else.

set(page_c ${PROJECT_BINARY_DIR}/page.c)
file(GLOB page_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/report/page/*)
list(APPEND page_files ${DYGRAPHS}/dygraph.min.js ${DYGRAPHS}/dygraph.min.css)
anytime_embed(${page_c} at_page_file at_page_files report/page.h FILES ${page_files} SIZES)

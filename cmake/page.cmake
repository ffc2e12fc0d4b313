# Embeds the files of HTML pages (src/report/page/* and the packaged dygraphs) as at_page_files. New
# files are picked up automatically.

set(page_c ${PROJECT_BINARY_DIR}/page.c)
set(page_folder ${PROJECT_SOURCE_DIR}/src/report/page)
file(GLOB page_files CONFIGURE_DEPENDS
  ${page_folder}/*.html ${page_folder}/*.css ${page_folder}/*.js)
list(APPEND page_files ${DYGRAPHS}/dygraph.min.js ${DYGRAPHS}/dygraph.min.css)
anytime_embed(${page_c} at_page_file at_page_files report/page/page.h FILES ${page_files} SIZES)

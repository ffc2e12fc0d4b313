# Embeds include/anytime.h as at_header_files, for its manual page.

set(header_c ${PROJECT_BINARY_DIR}/header.c)
anytime_embed(${header_c} at_header_file at_header_files cli/header.h
  FILES ${PROJECT_SOURCE_DIR}/include/anytime.h)

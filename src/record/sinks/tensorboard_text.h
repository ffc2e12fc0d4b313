/* tensorboard_text.h - a run's settings as people read them. */
#ifndef AT_RECORD_SINKS_TENSORBOARD_TEXT_H
#define AT_RECORD_SINKS_TENSORBOARD_TEXT_H

#include "record/record.h"

/* A table in Markdown: what the run is, then every option. To be freed by the caller; NULL when
 * there is no memory. */
char *at_tensorboard_settings(const at_run_info *info);

#endif

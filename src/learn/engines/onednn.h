/* onednn.h - settings of the convolution engine for the whole process. */
#ifndef AT_LEARN_ENGINES_ONEDNN_H
#define AT_LEARN_ENGINES_ONEDNN_H

/* How many threads one convolution may use; 1 when this is never called, and then none is ever
 * started. To be called before the first at_conv_onednn.open, by the thread that calls it: the
 * number changes how sums are grouped, so it is part of what a job's bits depend on. */
void at_onednn_threads(int threads);

#endif

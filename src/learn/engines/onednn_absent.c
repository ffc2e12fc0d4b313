/* In place of onednn.c when anytime is built without oneDNN: both engines say that they do not run
 * here (a block of 0), so that nets use the reference convolutions. */
#include "learn/engines/conv_kernels.h"

static uint32_t block(void)
{
    return 0;
}

const at_conv_kernels at_conv_onednn = {.name = "onednn", .block = block};
const at_conv_kernels at_conv_exact = {.name = "onednn exact", .block = block};

void at_onednn_threads(int threads)
{
    (void)threads;
}

/* Every family of models. A new one is a file family_NAME.c and a line here. */
#include "learn/net/net.h"

const at_model_family at_model_families[] = {
    {"softmax", "softmax", "softmax regression: one dense layer", at_family_softmax},
    {"mlp", "mlp:H1,H2,..", "dense layers of these widths with ReLU between them", at_family_mlp},
};
const size_t at_model_families_count = sizeof at_model_families / sizeof *at_model_families;

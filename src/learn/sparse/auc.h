/* auc.h - area under the ROC curve of a binary classifier. */
#ifndef AT_LEARN_SPARSE_AUC_H
#define AT_LEARN_SPARSE_AUC_H

#include <stddef.h>
#include <stdint.h>

/* The fraction of pairs, one sample of each class, in which the one with label 1 has the larger
 * margin; a tie counts half. Exact. NAN when a class has no sample, when a margin is NaN, or when
 * there is no memory to sort. */
double at_auc(const float *margins, const uint32_t *labels, size_t count);

#endif

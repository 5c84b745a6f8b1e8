/* SPDX-License-Identifier: Apache-2.0 */
/* auc.h - computes the result of the op auc from its counts. */
#ifndef FL_KERNEL_AUC_H
#define FL_KERNEL_AUC_H

#include <stdbool.h>
#include <stdint.h>

/* The area under the curve (pr: of precision over recall) of n buckets. */
double fl_auc_area(const int64_t *pos, const int64_t *neg, int64_t n, bool pr);

#endif

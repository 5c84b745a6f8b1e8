/* SPDX-License-Identifier: Apache-2.0 */
/* shuffle.h - numpy's random order: Fluid assigns whole parameters to servers
 * in the order of numpy.random.seed(seed); numpy.random.shuffle(list). */
#ifndef FL_BASE_SHUFFLE_H
#define FL_BASE_SHUFFLE_H

#include <stdint.h>

/* Write the numbers 0 .. n - 1 in that order. */
void fl_shuffle(uint32_t seed, int n, int *out);

#endif

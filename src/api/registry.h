/* SPDX-License-Identifier: Apache-2.0 */
/* registry.h - every operator of the engine in one registry. */
#ifndef FL_API_REGISTRY_H
#define FL_API_REGISTRY_H

#include "op/op.h"

/* Own: *out. Err: EINVAL (a table of operators is wrong). */
fl_err fl_registry_all(fl_registry **out) FL_MUST_CHECK;

#endif

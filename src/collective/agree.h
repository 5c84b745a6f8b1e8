/* SPDX-License-Identifier: Apache-2.0 */
/* agree.h - do all ranks run the same program? */
#ifndef FL_COLLECTIVE_AGREE_H
#define FL_COLLECTIVE_AGREE_H

#include "collective/backend.h"
#include "graph/program.h"

/* What must be the same on all ranks, as text. It has everything of a program
 * but the rank, the endpoints, seeds, and where in a script an operator was
 * made. Own: the caller frees it with fl_mem_free. */
char *fl_agree_text(const fl_program *p);

/* All ranks call this with their text. Err: EINVAL (the programs differ: the
 * sentence shows the first difference; all ranks get it), else as the calls of
 * the backend. */
fl_err fl_agree(fl_backend *b, int ranks, int rank,
                const char *text) FL_MUST_CHECK;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* agree.h - checks that all ranks run the same program. */
#ifndef FL_COLLECTIVE_AGREE_H
#define FL_COLLECTIVE_AGREE_H

#include "collective/backend.h"
#include "graph/program.h"

/* The text of a program without what may differ between ranks: the rank, the
 * endpoints, seeds, and the script lines that made the ops. Own: the caller
 * frees it with fl_mem_free. */
char *fl_agree_text(const fl_program *p);

/* All ranks call this with their text. Err: EINVAL (the programs differ: the
 * message shows the first difference; all ranks get it), or an error of the
 * backend. */
fl_err fl_agree(fl_backend *b, int ranks, int rank,
                const char *text) FL_MUST_CHECK;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - the readable form of a program, for its writer and its reader.
 *
 *     random_seed 90                      # where it is not 0
 *     block 0
 *       data x: f32[-1,13]
 *       param fc_0.w_0: f32[13,1] lr=0.5 !trainable
 *       var fc_0.tmp_0: f32[-1,1] lod=1 persistable
 *       var rows: selected_rows f32[10,4]
 *       mul(X=x, Y=fc_0.w_0) -> Out=fc_0.tmp_0 {x_num_col_dims=1}
 *     block 1 parent=0 forward=0
 *       sum(X=[a, b]) -> Out=c
 *
 * A name with other letters than [A-Za-z0-9_.@/%+$-] is quoted. An attribute
 * shows its type: 1 int, 1l long, 1.0 float, "a" string, true bool, @1 block,
 * [1, 2] ints, [1l] longs, and so on; an empty list is ints[]. A line break
 * ends a statement except within brackets; # starts a comment. */
#ifndef FL_GRAPH_TEXT_H
#define FL_GRAPH_TEXT_H

#include "graph/program.h"

/* The word before a var; each word implies some flags. */
typedef enum fl_var_word {
    FL_WORD_VAR,
    FL_WORD_DATA,
    FL_WORD_PARAM,
    FL_WORDS,
} fl_var_word;

extern const char *const fl_var_words[FL_WORDS];

/* Flags after the shape of a var: they are written if they differ from what the
 * word implies, as "persistable" or "!persistable". */
typedef struct fl_var_flag {
    const char *name; /* NULL ends the table */
    size_t at;        /* offset of a bool */
    bool of_param;    /* the bool is in fl_param_info, not in fl_var */
    unsigned implied; /* bit 1 << word: the default for that word is true */
} fl_var_flag;

extern const fl_var_flag fl_var_flags[];

bool fl_name_is_bare(const char *name); /* it needs no quotes */
bool fl_kind_has_tensor(fl_kind k);     /* it has a dtype and a shape */

#endif

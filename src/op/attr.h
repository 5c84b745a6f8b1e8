/* attr.h - an attribute: a name, a type, a value.
 *
 * The same struct is a default in an operator's table and a value in a
 * program. The numbers are those of Paddle's AttrType. */
#ifndef FL_OP_ATTR_H
#define FL_OP_ATTR_H

#include "base/arena.h"
#include "base/err.h"

typedef enum fl_attr_type {
    FL_ATTR_INT,
    FL_ATTR_FLOAT,
    FL_ATTR_STRING,
    FL_ATTR_INTS,
    FL_ATTR_FLOATS,
    FL_ATTR_STRINGS,
    FL_ATTR_BOOL,
    FL_ATTR_BOOLS,
    FL_ATTR_BLOCK, /* i is the block's index */
    FL_ATTR_LONG,
    FL_ATTR_BLOCKS,
    FL_ATTR_LONGS,
} fl_attr_type;

typedef struct fl_attr {
    const char *name; /* NULL ends a table */
    fl_attr_type type;
    bool required; /* in an operator's table: there is no default */
    int n;         /* length of a list */
    union {
        int64_t i; /* INT, LONG, BLOCK */
        float f;
        bool b;
        const char *s;        /* STRING; NULL reads as "" */
        const int64_t *longs; /* INTS, LONGS, BLOCKS */
        const float *floats;
        const char *const *strings;
        const bool *bools;
    };
} fl_attr;

const char *fl_attr_type_name(fl_attr_type t); /* "int", "float", "longs" */

/* A copy whose lists and strings live in the arena. */
fl_attr fl_attr_dup(fl_arena *a, const fl_attr *from);
bool fl_attr_equal(const fl_attr *a, const fl_attr *b); /* name too */

/* `value` as the type that `spec` wants: int and long widen into each other
 * (an int must fit 32 bits), ints and longs too, int becomes float, an empty
 * list any list. EINVAL otherwise: "op: attribute x is ints, expected float".
 */
fl_err fl_attr_convert(fl_arena *a, const char *op, const fl_attr *spec,
                       const fl_attr *value, fl_attr *out) FL_MUST_CHECK;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c - checks the slots that the user has set. */
#include "data/schema.h"

#include <string.h>

static fl_err dense_width(const fl_data_slot *from, int64_t *width)
{
    const fl_shape *s = &from->shape;
    char text[FL_SHAPE_TEXT];
    *width = 1;
    if (s->rank < 1 || s->rank > FL_MAX_RANK)
        return fl_fail(FL_EINVAL,
                       "slot \"%s\": a dense slot needs a shape, whose first "
                       "dimension is the batch",
                       from->name);
    for (int i = 1; i < s->rank; i++)
        if (s->dim[i] < 1 || s->dim[i] > FL_SCHEMA_MAX ||
            (*width *= s->dim[i]) > FL_SCHEMA_MAX)
            return fl_fail(FL_EINVAL,
                           "slot \"%s\": its shape is %s, but only the first "
                           "dimension of a dense slot may be unknown, and an "
                           "example has at most %d values",
                           from->name, fl_shape_text(s, text), FL_SCHEMA_MAX);
    return FL_OK;
}

static fl_err check_slot(const fl_data_slot *from)
{
    if (!from->name || !*from->name)
        return fl_fail(FL_EINVAL, "a slot has no name");
    if (from->dtype != FL_F32 && from->dtype != FL_I64)
        return fl_fail(FL_EINVAL,
                       "slot \"%s\" is %s, expected f32 (float) or i64 "
                       "(uint64)",
                       from->name, fl_dtype_name(from->dtype));
    return FL_OK;
}

static void count_singles(fl_schema *s)
{
    for (int i = s->n - 1, n = 0; i >= 0; i--) {
        const fl_schema_slot *to = &s->slot[i];
        n = to->dtype == FL_I64 && to->width <= 1 && to->column >= 0 ? n + 1
                                                                     : 0;
        s->slot[i].singles = n;
    }
}

fl_err fl_schema_init(fl_schema *s, int n, const fl_data_slot *slots,
                      fl_arena *a)
{
    if (n < 1 || n > FL_SCHEMA_MAX)
        return fl_fail(FL_EINVAL,
                       "%d slots, expected 1 to %d: set the variables that a "
                       "line has values for",
                       n, FL_SCHEMA_MAX);
    *s = (fl_schema){.n = n};
    s->slot = fl_arena_alloc(a, (size_t)n * sizeof *s->slot);
    s->slot_of = fl_arena_alloc(a, (size_t)n * sizeof *s->slot_of);
    for (int i = 0; i < n; i++) {
        fl_schema_slot *to = &s->slot[i];
        FL_TRY(check_slot(&slots[i]));
        *to = (fl_schema_slot){
            .name = fl_arena_strdup(a, slots[i].name),
            .dtype = slots[i].dtype,
            .shape = slots[i].sparse ? (fl_shape){2, {-1, 1}} : slots[i].shape,
            .column = slots[i].unused ? -1 : s->n_columns,
        };
        if (!slots[i].sparse && !slots[i].unused)
            FL_TRY(dense_width(&slots[i], &to->width));
        if (!slots[i].unused)
            s->slot_of[s->n_columns++] = i;
    }
    count_singles(s);
    return FL_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* print     Out = In; its value is printed to stderr
 * gradient  In@GRAD = Out@GRAD, by another print, which prints the gradient
 *
 * print_phase says which of the two print: FORWARD, BACKWARD or BOTH. They
 * print at most first_n times, and `summarize` elements (-1: all). */
#include "base/str.h"
#include "op/op.h"

#include <stdio.h>
#include <string.h>

static void add_lod(fl_str *s, const fl_lod *lod)
{
    fl_str_add(s, "\tlod: [");
    for (int l = 0; l < lod->levels; l++) {
        fl_str_add(s, l ? ",[" : "[");
        for (int64_t i = 0; i < lod->n[l]; i++)
            fl_str_printf(s, "%s%lld", i ? "," : "", (long long)lod->off[l][i]);
        fl_str_add(s, "]");
    }
    fl_str_add(s, "]\n");
}

static fl_err add_elements(fl_str *s, const fl_tensor *t, int64_t most)
{
    size_t size = fl_dtype_size(t->dtype);
    int64_t n = fl_tensor_numel(t);
    fl_str_add(s, "\tdata: ");
    for (int64_t i = 0; i < n && (most < 0 || i < most); i++) {
        double d;
        FL_TRY(fl_convert(1, t->dtype, (const char *)t->data + (size_t)i * size,
                          FL_F64, &d));
        fl_str_printf(s, "%s%.9g", i ? "," : "", d);
    }
    fl_str_add(s, "\n");
    return FL_OK;
}

static fl_err describe(fl_call *c, const fl_tensor *t, fl_str *s)
{
    char text[FL_SHAPE_TEXT];
    const char *message = fl_attr_str(c, "message");
    if (*message)
        fl_str_printf(s, "%s\n", message);
    if (fl_attr_bool(c, "print_tensor_name") && c->desc)
        fl_str_printf(s, "Tensor[%s]\n", fl_desc_in1(c->desc, "In"));
    if (fl_attr_bool(c, "print_tensor_shape"))
        fl_str_printf(s, "\tshape: %s\n", fl_shape_text(&t->shape, text));
    if (fl_attr_bool(c, "print_tensor_type"))
        fl_str_printf(s, "\tdtype: %s\n", fl_dtype_name(t->dtype));
    if (fl_attr_bool(c, "print_tensor_lod") && t->lod.levels)
        add_lod(s, &t->lod);
    return add_elements(s, t, fl_attr_i64(c, "summarize"));
}

/* Whether this op prints in its phase, and has printed less than first_n times.
 */
static fl_err count_shown(fl_call *c, bool *shows)
{
    const char *never = fl_attr_bool(c, "is_forward") ? "BACKWARD" : "FORWARD";
    int64_t most = fl_attr_i64(c, "first_n");
    *shows = false;
    if (!strcmp(fl_attr_str(c, "print_phase"), never))
        return FL_OK;
    bool first = !c->scratch;
    int64_t *shown = fl_scratch(c, 1, sizeof *shown);
    if (!shown)
        return FL_ENOMEM;
    *shown = first ? 1 : *shown + 1;
    *shows = most < 0 || *shown <= most;
    return FL_OK;
}

static fl_err print(fl_call *c)
{
    bool shows;
    FL_TRY(fl_view(c, "In", "Out"));
    FL_TRY(count_shown(c, &shows));
    if (!shows)
        return FL_OK;
    fl_str s = {0};
    fl_err err = describe(c, fl_in(c, "In"), &s);
    if (!err)
        fwrite(s.at, 1, s.n, stderr); /* one write, so that lines do not mix */
    fl_str_fini(&s);
    return err;
}

static fl_err infer_print(fl_infer *x)
{
    fl_meta *out = fl_meta_out(x, "Out", 0);
    FL_TRY(fl_meta_check(x, "In", FL_ANY));
    if (out)
        *out = *fl_meta_in(x, "In", 0);
    return FL_OK;
}

static fl_err print_grad(fl_grads *g)
{
    fl_desc *d = fl_grad_emit(g, "print");
    const fl_desc *fwd = g->fwd;
    fl_desc_set_in1(d, "In", fl_grad_name(g->arena, fl_desc_out1(fwd, "Out")));
    fl_desc_set_out1(d, "Out", fl_grad_name(g->arena, fl_desc_in1(fwd, "In")));
    for (int i = 0; i < fwd->n_attr; i++)
        if (!fl_attr_common(fwd->attr[i].name))
            fl_desc_set_attr(d, &fwd->attr[i]);
    fl_desc_set_attr(d, &(fl_attr){"is_forward", FL_ATTR_BOOL, .b = false});
    return FL_OK;
}

const fl_op_def fl_op_print = {
    .type = "print",
    .in = {{"In"}},
    .out = {{"Out", FL_VIEW}},
    .attr =
        {
            {"first_n", FL_ATTR_INT, .i = -1},
            {"message", FL_ATTR_STRING},
            {"summarize", FL_ATTR_INT, .i = -1},
            {"print_tensor_name", FL_ATTR_BOOL, .b = true},
            {"print_tensor_type", FL_ATTR_BOOL, .b = true},
            {"print_tensor_shape", FL_ATTR_BOOL, .b = true},
            {"print_tensor_lod", FL_ATTR_BOOL, .b = true},
            {"print_phase", FL_ATTR_STRING, .s = "BOTH"},
            {"is_forward", FL_ATTR_BOOL, .b = true},
        },
    .infer = infer_print,
    .run = print,
    .make_grad = print_grad,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_conv.c - convolutions whose outputs are pooled.
 *
 *   conv2d, elementwise_add, relu, pool2d          fused_conv_pool
 *   pool2d_grad, relu_grad, elementwise_add_grad,
 *   conv2d_grad                                    fused_conv_pool_grad
 *
 * The output of relu has its channels last in the fused plan, so that all of
 * its readers are fused, or none. */
#include "exec/fuse.h"

#include <string.h>

enum {
    CHANNELS = 8, /* least number of channels for which fusion pays */
};

/* The lines of a chain; those of the gradient are -1 if there is none. */
typedef struct chain {
    int conv, add, relu, pool;
    int pool_grad, relu_grad, add_grad, conv_grad;
} chain;

static const fl_desc *line(const fl_lines *l, int i)
{
    return l->descs.at[i];
}

static bool in_is(const fl_desc *d, const char *slot, const char *name)
{
    const char *in = fl_desc_in1(d, slot);
    return in && !strcmp(in, name);
}

/* The first line after `after` whose op has that type and reads the name in the
 * slot. */
static int reader_of(const fl_lines *l, const char *name, int after,
                     const char *type, const char *slot)
{
    for (int i = after; (i = fl_lines_reader(l, name, i)) >= 0;)
        if (fl_lines_is(l, i, type) && in_is(line(l, i), slot, name))
            return i;
    return -1;
}

/* Whether the name is temporary and read by exactly n lines. */
static bool is_closed(const fl_lines *l, const char *name, int n)
{
    return fl_lines_temporary(l, name) && fl_lines_readers(l, name) == n;
}

/* --- which convolutions and pools --- */

static bool is_plain_conv(const fl_lines *l, const fl_desc *d)
{
    const fl_var *x = fl_lines_var(l, fl_desc_in1(d, "Input"));
    const fl_var *w = fl_lines_var(l, fl_desc_in1(d, "Filter"));
    return x && w && x->dtype == FL_F32 && w->dtype == FL_F32 &&
           w->shape.rank == 4 && w->shape.dim[0] >= CHANNELS &&
           !fl_desc_in1(d, "Bias") && !fl_desc_in1(d, "ResidualData");
}

/* Whether the op adds one value to each channel. */
static bool is_channel_bias(const fl_lines *l, const fl_desc *conv,
                            const fl_desc *add)
{
    const fl_var *b = fl_lines_var(l, fl_desc_in1(add, "Y"));
    const fl_var *w = fl_lines_var(l, fl_desc_in1(conv, "Filter"));
    return b && b->dtype == FL_F32 && b->shape.rank == 1 &&
           b->shape.dim[0] == w->shape.dim[0] &&
           fl_desc_int(add, "axis", -1) == 1;
}

static bool is_set(const fl_desc *d, const char *name)
{
    const fl_attr *a = fl_desc_attr(d, name);
    return a && a->b;
}

static const int64_t *pair(const fl_desc *d, const char *name)
{
    const fl_attr *a = fl_desc_attr(d, name);
    return a && a->n == 2 ? a->longs : NULL;
}

/* Whether the op is a max pool whose windows do not overlap. */
static bool is_plain_pool(const fl_desc *d)
{
    const fl_attr *type = fl_desc_attr(d, "pooling_type");
    const int64_t *size = pair(d, "ksize"), *stride = pair(d, "strides");
    const int64_t *pad = pair(d, "paddings");
    return type && type->s && !strcmp(type->s, "max") &&
           !is_set(d, "global_pooling") && !is_set(d, "adaptive") &&
           !is_set(d, "ceil_mode") && size && stride && size[0] == stride[0] &&
           size[1] == stride[1] && (!pad || (!pad[0] && !pad[1]));
}

/* --- the chain --- */

static bool find_forward(const fl_lines *l, chain *c)
{
    const fl_desc *conv = line(l, c->conv);
    const char *out = fl_desc_out1(conv, "Output");
    c->add = reader_of(l, out, c->conv, "elementwise_add", "X");
    if (c->add < 0 || !is_plain_conv(l, conv) ||
        !is_channel_bias(l, conv, line(l, c->add)))
        return false;
    out = fl_desc_out1(line(l, c->add), "Out");
    c->relu = reader_of(l, out, c->add, "relu", "X");
    if (c->relu < 0 || !is_closed(l, out, 1))
        return false;
    out = fl_desc_out1(line(l, c->relu), "Out");
    c->pool = reader_of(l, out, c->relu, "pool2d", "X");
    return c->pool >= 0 && is_plain_pool(line(l, c->pool));
}

/* The only line that reads output `out` of line i. */
static int only_reader(const fl_lines *l, int i, const char *out,
                       const char *type, const char *slot)
{
    const char *name = i < 0 ? NULL : fl_desc_out1(line(l, i), out);
    if (!name || !strcmp(name, FL_EMPTY) || !is_closed(l, name, 1))
        return -1;
    return reader_of(l, name, i, type, slot);
}

/* Find the lines of the gradient. False: there are some, but not all of them.
 */
static bool find_backward(const fl_lines *l, chain *c)
{
    const char *y = fl_desc_out1(line(l, c->conv), "Output");
    const char *r = fl_desc_out1(line(l, c->relu), "Out");
    c->pool_grad = reader_of(l, r, c->pool, "pool2d_grad", "X");
    c->relu_grad =
        only_reader(l, c->pool_grad, "X@GRAD", "relu_grad", "Out@GRAD");
    c->add_grad = only_reader(l, c->relu_grad, "X@GRAD", "elementwise_add_grad",
                              "Out@GRAD");
    c->conv_grad =
        only_reader(l, c->add_grad, "X@GRAD", "conv2d_grad", "Output@GRAD");
    if (c->pool_grad < 0)
        return is_closed(l, y, 1) && is_closed(l, r, 1);
    return c->conv_grad >= 0 && is_closed(l, y, 2) && is_closed(l, r, 3) &&
           in_is(line(l, c->relu_grad), "Out", r) &&
           in_is(line(l, c->add_grad), "X", y);
}

/* Whether the inputs of the fused ops are not changed before they run. */
static bool is_unchanged(const fl_lines *l, const chain *c)
{
    const fl_desc *conv = line(l, c->conv);
    const char *reads[] = {fl_desc_in1(conv, "Input"),
                           fl_desc_in1(conv, "Filter"),
                           fl_desc_in1(line(l, c->add), "Y")};
    for (int i = 0; i < 3; i++)
        if (fl_lines_written(l, reads[i], c->conv, c->pool))
            return false;
    return c->conv_grad < 0 ||
           !fl_lines_written(l, fl_desc_in1(line(l, c->pool_grad), "Out@GRAD"),
                             c->pool_grad, c->conv_grad);
}

/* --- the fused ops --- */

static void describe(const fl_lines *l, const chain *c, fl_desc *f)
{
    static const char *const same[] = {"strides", "paddings", "groups",
                                       "dilations", "data_format"};
    const fl_desc *conv = line(l, c->conv);
    fl_desc_set_in1(f, "Input", fl_desc_in1(conv, "Input"));
    fl_desc_set_in1(f, "Filter", fl_desc_in1(conv, "Filter"));
    for (int i = 0; i < 5; i++)
        if (fl_desc_attr(conv, same[i]))
            fl_desc_set_attr(f, fl_desc_attr(conv, same[i]));
    fl_desc_set_attr(f, fl_desc_attr(line(l, c->pool), "ksize"));
}

static void set_out(fl_desc *f, const char *slot, const char *name)
{
    if (name)
        fl_desc_set_out1(f, slot, name);
}

static void fuse_backward(fl_lines *l, const chain *c)
{
    const fl_desc *conv = line(l, c->conv_grad), *add = line(l, c->add_grad);
    fl_desc *f = fl_lines_fused(l, "fused_conv_pool_grad", conv);
    describe(l, c, f);
    fl_desc_set_in1(f, "Conv", fl_desc_out1(line(l, c->relu), "Out"));
    fl_desc_set_in1(f, "Out@GRAD",
                    fl_desc_in1(line(l, c->pool_grad), "Out@GRAD"));
    set_out(f, "Conv@GRAD", fl_desc_out1(add, "X@GRAD"));
    set_out(f, "Bias@GRAD", fl_desc_out1(add, "Y@GRAD"));
    set_out(f, "Input@GRAD", fl_desc_out1(conv, "Input@GRAD"));
    set_out(f, "Filter@GRAD", fl_desc_out1(conv, "Filter@GRAD"));
    l->descs.at[c->pool_grad] = l->descs.at[c->relu_grad] = NULL;
    l->descs.at[c->add_grad] = NULL;
    fl_lines_put(l, c->conv_grad, f);
}

static void fuse_forward(fl_lines *l, const chain *c)
{
    fl_desc *f = fl_lines_fused(l, "fused_conv_pool", line(l, c->conv));
    describe(l, c, f);
    fl_desc_set_in1(f, "Bias", fl_desc_in1(line(l, c->add), "Y"));
    set_out(f, "Out", fl_desc_out1(line(l, c->pool), "Out"));
    set_out(f, "Conv", fl_desc_out1(line(l, c->relu), "Out"));
    l->descs.at[c->conv] = l->descs.at[c->add] = l->descs.at[c->relu] = NULL;
    fl_lines_put(l, c->pool, f);
}

void fl_fuse_conv(fl_lines *l)
{
    for (int i = 0; i < l->descs.n; i++) {
        chain c = {.conv = i};
        if (!fl_lines_is(l, i, "conv2d") || !find_forward(l, &c) ||
            !find_backward(l, &c) || !is_unchanged(l, &c))
            continue;
        if (c.conv_grad >= 0)
            fuse_backward(l, &c);
        fuse_forward(l, &c);
    }
}

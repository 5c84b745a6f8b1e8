/* SPDX-License-Identifier: Apache-2.0 */
/* conv_dnn.c - convolutions by oneDNN.
 *
 * Its kernels are best with channels last: on the layers of LeNet they take
 * 1.5 times as long in blocks of channels, and twice in our own order. So
 * tensors are reordered on the way in and out, which costs a few per cent. */
#include "kernel/conv.h"

#include "base/mem.h"
#include "kernel/dnn.h"

#include <string.h>

/* What a frame keeps between calls. */
typedef struct space {
    fl_conv made_for;
    bool made, good; /* steps were made for this shape; they can be used */
    dnnl_engine_t engine;
    fl_dnn_step step[2]; /* forward; or by weights, by data */
} space;

static void end_steps(space *s)
{
    for (int i = 0; i < 2; i++)
        fl_dnn_step_fini(&s->step[i]);
}

static void end_space(void *scratch)
{
    space *s = scratch;
    end_steps(s);
    dnnl_engine_destroy(s->engine);
    fl_mem_free(s);
}

static space *space_of(fl_call *c)
{
    if (!c->scratch) {
        c->scratch = fl_mem_alloc(sizeof(space));
        c->end_scratch = end_space;
    }
    return c->scratch;
}

void *fl_conv_space(fl_call *c, const fl_conv *g, fl_dtype t)
{
    size_t bytes;
    const fl_shape columns = {5,
                              {g->c / g->groups, g->kh, g->kw, g->oh, g->ow}};
    return fl_shape_bytes(&columns, t, &bytes) ? NULL
                                               : fl_workspace_get(c, bytes);
}

/* --- Descriptions ------------------------------------------------------ */

/* The descriptors of the three tensors: in our order, and in the order that
 * oneDNN chooses. */
typedef struct descs {
    dnnl_memory_desc_t x, w, bias, y;
    dnnl_memory_desc_t any_x, any_w, any_y;
    dnnl_dims_t stride, dilation, pad;
} descs;

/* `last`: y has its channels last. */
static bool describe(const fl_conv *g, bool last, descs *d)
{
    dnnl_dims_t x = {g->n, g->c, g->h, g->w}, y = {g->n, g->m, g->oh, g->ow};
    dnnl_dims_t w = {g->m, g->c, g->kh, g->kw};
    dnnl_dims_t grouped = {g->groups, g->m / g->groups, g->c / g->groups, g->kh,
                           g->kw};
    bool one = g->groups == 1;
    struct {
        dnnl_memory_desc_t *desc;
        int rank;
        const int64_t *dims;
        dnnl_format_tag_t tag;
    } all[] = {
        {&d->x, 4, x, dnnl_nchw},
        {&d->y, 4, y, last ? dnnl_nhwc : dnnl_nchw},
        {&d->bias, 1, &g->m, dnnl_x},
        {&d->w, one ? 4 : 5, one ? w : grouped, one ? dnnl_oihw : dnnl_goihw},
        {&d->any_x, 4, x, dnnl_nhwc},
        {&d->any_y, 4, y, dnnl_nhwc},
        {&d->any_w, one ? 4 : 5, one ? w : grouped, dnnl_format_tag_any},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (dnnl_memory_desc_init_by_tag(all[i].desc, all[i].rank, all[i].dims,
                                         dnnl_f32, all[i].tag) != dnnl_success)
            return false;
    for (int i = 0; i < 2; i++) {
        d->stride[i] = g->stride[i];
        d->pad[i] = g->pad[i];
        d->dilation[i] = g->dilation[i] - 1; /* oneDNN counts skipped ones */
    }
    return true;
}

static bool choose_forward(const descs *d, const dnnl_memory_desc_t *bias,
                           bool relu, dnnl_engine_t engine,
                           dnnl_primitive_desc_t *out)
{
    dnnl_convolution_desc_t op;
    return dnnl_dilated_convolution_forward_desc_init(
               &op, dnnl_forward_training, dnnl_convolution_direct, &d->any_x,
               &d->any_w, bias, &d->any_y, d->stride, d->dilation, d->pad,
               d->pad) == dnnl_success &&
           fl_dnn_choose(&op, relu, engine, NULL, out);
}

/* --- Steps ------------------------------------------------------------- */

static bool make_forward(fl_dnn_step *s, const descs *d, dnnl_engine_t engine,
                         const_dnnl_primitive_desc_t forward)
{
    const fl_dnn_spec spec[] = {
        {DNNL_ARG_SRC, dnnl_query_src_md, false, &d->x},
        {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, false, &d->w},
        {DNNL_ARG_DST, dnnl_query_dst_md, true, &d->y},
    };
    return fl_dnn_step_init(s, engine, forward, 3, spec);
}

static bool make_with_relu(fl_dnn_step *s, const descs *d, dnnl_engine_t engine,
                           const_dnnl_primitive_desc_t forward)
{
    const fl_dnn_spec spec[] = {
        {DNNL_ARG_SRC, dnnl_query_src_md, false, &d->x},
        {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, false, &d->w},
        {DNNL_ARG_BIAS, dnnl_query_weights_md, false, &d->bias, 1},
        {DNNL_ARG_DST, dnnl_query_dst_md, true, &d->y},
    };
    dnnl_primitive_desc_t pd;
    if (!choose_forward(d, &d->bias, true, engine, &pd))
        return false;
    bool good = fl_dnn_step_init(s, engine, pd, 4, spec);
    dnnl_primitive_desc_destroy(pd);
    return good;
}

static bool make_by_weights(fl_dnn_step *s, const descs *d,
                            dnnl_engine_t engine,
                            const_dnnl_primitive_desc_t forward)
{
    const fl_dnn_spec spec[] = {
        {DNNL_ARG_SRC, dnnl_query_src_md, false, &d->x},
        {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, false, &d->y},
        {DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md, true, &d->w},
    };
    dnnl_convolution_desc_t op;
    dnnl_primitive_desc_t pd;
    if (dnnl_dilated_convolution_backward_weights_desc_init(
            &op, dnnl_convolution_direct, &d->any_x, &d->any_w, NULL, &d->any_y,
            d->stride, d->dilation, d->pad, d->pad) != dnnl_success ||
        !fl_dnn_choose(&op, false, engine, forward, &pd))
        return false;
    bool good = fl_dnn_step_init(s, engine, pd, 3, spec);
    dnnl_primitive_desc_destroy(pd);
    return good;
}

static bool make_by_data(fl_dnn_step *s, const descs *d, dnnl_engine_t engine,
                         const_dnnl_primitive_desc_t forward)
{
    const fl_dnn_spec spec[] = {
        {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, false, &d->y},
        {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, false, &d->w},
        {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, true, &d->x},
    };
    dnnl_convolution_desc_t op;
    dnnl_primitive_desc_t pd;
    if (dnnl_dilated_convolution_backward_data_desc_init(
            &op, dnnl_convolution_direct, &d->any_x, &d->any_w, &d->any_y,
            d->stride, d->dilation, d->pad, d->pad) != dnnl_success ||
        !fl_dnn_choose(&op, false, engine, forward, &pd))
        return false;
    bool good = fl_dnn_step_init(s, engine, pd, 3, spec);
    dnnl_primitive_desc_destroy(pd);
    return good;
}

typedef bool (*make)(fl_dnn_step *, const descs *, dnnl_engine_t,
                     const_dnnl_primitive_desc_t);

/* Make the steps with the functions in `how`; an entry is NULL if its step is
 * not needed. */
static bool make_steps(space *s, const fl_conv *g, bool last, const make how[2])
{
    descs d = {0};
    dnnl_primitive_desc_t forward;
    if (!s->engine &&
        dnnl_engine_create(&s->engine, dnnl_cpu, 0) != dnnl_success)
        return false;
    if (!describe(g, last, &d) ||
        !choose_forward(&d, NULL, false, s->engine, &forward))
        return false;
    bool good = true;
    for (int i = 0; i < 2; i++)
        good = good && (!how[i] || how[i](&s->step[i], &d, s->engine, forward));
    dnnl_primitive_desc_destroy(forward);
    if (good && how[0] && how[1])
        fl_dnn_share(&s->step[1], 0, &s->step[0], 1); /* Output@GRAD */
    return good;
}

/* The steps for this shape. They are made now unless the last call had the same
 * shape. */
static space *prepare(fl_call *c, const fl_conv *g, bool last,
                      const make how[2])
{
    space *s = space_of(c);
    if (s->made && !memcmp(&s->made_for, g, sizeof *g))
        return s;
    fl_dnn_alone();
    end_steps(s);
    s->made = true;
    s->made_for = *g;
    s->good = make_steps(s, g, last, how);
    return s;
}

/* Memory for both steps. Returns NULL also if oneDNN has no fast code for this
 * shape. */
static void *workspace_of(fl_call *c, const space *s)
{
    const size_t a = s->step[0].bytes, b = s->step[1].bytes;
    return s->good ? fl_workspace_get(c, a > b ? a : b) : NULL;
}

bool fl_conv_dnn(fl_call *c, const fl_conv *g, const float *x, const float *w,
                 float *y)
{
    space *s = prepare(c, g, false, (make[]){make_forward, NULL});
    void *at[] = {(void *)x, (void *)w, y};
    void *workspace = workspace_of(c, s);
    return workspace && fl_dnn_step_run(&s->step[0], at, workspace);
}

bool fl_conv_dnn_relu(fl_call *c, const fl_conv *g, const float *x,
                      const float *w, const float *bias, float *y)
{
    space *s = prepare(c, g, true, (make[]){make_with_relu, NULL});
    void *at[] = {(void *)x, (void *)w, (void *)bias, y};
    void *workspace = workspace_of(c, s);
    return workspace && fl_dnn_step_run(&s->step[0], at, workspace);
}

bool fl_conv_dnn_grad(fl_call *c, const fl_conv *g, bool last, const float *x,
                      const float *w, const float *dy, fl_conv_grads out)
{
    space *s = prepare(c, g, last,
                       (make[]){out.filter ? make_by_weights : NULL,
                                out.input ? make_by_data : NULL});
    void *weights[] = {(void *)x, (void *)dy, out.filter};
    void *data[] = {(void *)dy, (void *)w, out.input};
    void *workspace = workspace_of(c, s);
    return workspace &&
           (!out.filter || fl_dnn_step_run(&s->step[0], weights, workspace)) &&
           (!out.input || fl_dnn_step_run(&s->step[1], data, workspace));
}

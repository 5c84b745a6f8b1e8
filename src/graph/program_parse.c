/* SPDX-License-Identifier: Apache-2.0 */
/* program_parse.c - text back into a program. text.h shows the form.
 *
 * A recursive descent parser without a tokenizer: each function reads what it
 * expects and moves the reader past it. Texts may come from outside, so every
 * list has a limit, and every error names its line and column. */
#include "graph/text.h"
#include "graph/text_read.h"
#include "graph/verify.h"

enum {
    MOST_SLOTS = 64, /* far more than any table has */
    MOST_ATTRS = 256,
};

/* --- ops --- */

static fl_err read_attrs(fl_text_reader *r, fl_desc *d)
{
    if (!fl_read_accept(r, "{"))
        return FL_OK;
    do {
        fl_attr v = {0};
        FL_TRY(fl_read_name(r, "an attribute", &v.name));
        if (fl_desc_attr(d, v.name))
            return FL_READ_FAIL(r, "attribute %s is given twice", v.name);
        if (d->n_attr == MOST_ATTRS)
            return FL_READ_FAIL(r, "more than %d attributes", MOST_ATTRS);
        FL_TRY(fl_read_expect(r, "="));
        FL_TRY(fl_read_value(r, &v));
        fl_desc_set_attr(d, &v);
    } while (fl_read_accept(r, ","));
    return fl_read_expect(r, "}");
}

typedef FL_VEC(const char *) names;

static fl_err read_arg_list(fl_text_reader *r, names *out)
{
    const char *name;
    if (!fl_read_accept(r, "[")) {
        FL_TRY(fl_read_name(r, "a variable", &name));
        fl_push(out, name);
        return FL_OK;
    }
    if (fl_read_accept(r, "]"))
        return FL_OK;
    do {
        FL_TRY(fl_read_name(r, "a variable", &name));
        fl_push(out, name);
    } while (fl_read_accept(r, ","));
    return fl_read_expect(r, "]");
}

static fl_err read_slot(fl_text_reader *r, fl_desc *d, bool out)
{
    const char *slot;
    FL_TRY(fl_read_name(r, "a slot", &slot));
    if (out ? fl_desc_out(d, slot) : fl_desc_in(d, slot))
        return FL_READ_FAIL(r, "slot %s is given twice", slot);
    if ((out ? d->n_out : d->n_in) == MOST_SLOTS)
        return FL_READ_FAIL(r, "more than %d slots", MOST_SLOTS);
    FL_TRY(fl_read_expect(r, "="));
    names n = {0};
    fl_err err = read_arg_list(r, &n);
    if (!err)
        (out ? fl_desc_set_out : fl_desc_set_in)(d, slot, (int)n.n, n.at);
    fl_vec_fini(&n);
    return err;
}

static fl_err read_desc(fl_text_reader *r, fl_desc *d)
{
    FL_TRY(fl_read_expect(r, "("));
    if (!fl_read_accept(r, ")")) {
        do
            FL_TRY(read_slot(r, d, false));
        while (fl_read_accept(r, ","));
        FL_TRY(fl_read_expect(r, ")"));
    }
    if (fl_read_accept(r, "->")) {
        do
            FL_TRY(read_slot(r, d, true));
        while (fl_read_accept(r, ","));
    }
    return read_attrs(r, d);
}

static fl_err read_op(fl_text_reader *r)
{
    const fl_op_def *def;
    const char *type;
    const fl_text_reader start = *r;
    FL_TRY(fl_read_name(r, "var, data, param, block or an op", &type));
    fl_read_skip(r);
    if (*r->at != '(')
        return fl_read_expected(r,
                                fl_arena_printf(r->a, "\"(\" after %s", type));
    if (fl_registry_get(r->p->registry, type, &def))
        return fl_read_place(&start, FL_ENOENT);
    fl_desc *d = fl_desc_new(r->a, type);
    FL_TRY(read_desc(r, d));
    /* A copy is checked, because the check converts attributes and the text
     * keeps its types. */
    fl_err err = fl_desc_check(def, fl_desc_dup(r->a, d), true);
    if (err)
        return fl_read_place(&start, err);
    fl_op *op = fl_arena_alloc(r->p->arena, sizeof *op);
    op->desc = *fl_desc_dup(r->p->arena, d);
    op->def = def;
    op->block = r->b;
    op->is_target = op->had_is_target = fl_read_word(r, "target");
    fl_push(&r->b->ops, op);
    return FL_OK;
}

/* --- vars --- */

static fl_kind read_kind(fl_text_reader *r)
{
    for (int k = FL_LOD_TENSOR; k <= FL_TUPLE; k++)
        if (fl_read_word(r, fl_kind_name((fl_kind)k)))
            return (fl_kind)k;
    return FL_LOD_TENSOR;
}

static fl_err read_dim(fl_text_reader *r, fl_shape *s)
{
    if (s->rank == FL_MAX_RANK)
        return FL_READ_FAIL(r, "a shape has at most %d dimensions",
                            FL_MAX_RANK);
    return fl_read_int(r, -1, INT64_MAX, &s->dim[s->rank++]);
}

/* Read "f32[-1,13]". Kinds without a tensor may have none. */
static fl_err read_type(fl_text_reader *r, fl_var *v)
{
    const char *start = r->at;
    v->kind = read_kind(r);
    fl_read_skip(r);
    const size_t n = strcspn(r->at, "[ \t\r\n");
    if (r->at[n] != '[' && !fl_kind_has_tensor(v->kind))
        return FL_OK;
    const char *name =
        fl_arena_printf(r->a, "%.*s", n > 64 ? 64 : (int)n, r->at);
    if (!fl_dtype_find(name, &v->dtype))
        return fl_read_expected(r, r->at == start ? "a kind or an element type"
                                                  : "an element type");
    r->at += n;
    FL_TRY(fl_read_expect(r, "["));
    if (fl_read_accept(r, "]"))
        return FL_OK;
    do
        FL_TRY(read_dim(r, &v->shape));
    while (fl_read_accept(r, ","));
    return fl_read_expect(r, "]");
}

static fl_err read_rate(fl_text_reader *r, float *rate)
{
    fl_attr v = {0};
    fl_read_skip(r);
    FL_TRY(fl_read_number(r, &v));
    *rate = v.type == FL_ATTR_FLOAT ? v.f : (float)v.i;
    return FL_OK;
}

static fl_err read_flag(fl_text_reader *r, fl_var *v, fl_param_info *param)
{
    const bool is = !fl_read_accept(r, "!");
    int64_t levels;
    if (is && fl_read_accept(r, "lod=")) {
        FL_TRY(fl_read_int(r, 0, INT32_MAX, &levels));
        v->lod_level = (int)levels;
        return FL_OK;
    }
    if (is && v->param && fl_read_accept(r, "lr="))
        return read_rate(r, &param->learning_rate);
    for (const fl_var_flag *f = fl_var_flags; f->name; f++)
        if ((v->param || !f->of_param) && fl_read_word(r, f->name)) {
            *(bool *)((f->of_param ? (char *)param : (char *)v) + f->at) = is;
            return FL_OK;
        }
    return fl_read_expected(r, "lod=, a flag or the end of the line");
}

static fl_err read_var(fl_text_reader *r, fl_var_word word)
{
    fl_param_info param = {.learning_rate = 1};
    fl_var v = {.param = word == FL_WORD_PARAM ? &param : NULL}, *made;
    for (const fl_var_flag *f = fl_var_flags; f->name; f++)
        *(bool *)((f->of_param ? (char *)&param : (char *)&v) + f->at) =
            f->implied & 1u << word;
    FL_TRY(fl_read_name(r, "a variable", &v.name));
    if (fl_block_var(r->b, v.name))
        return FL_READ_FAIL(r, "variable %s is declared twice in block %d",
                            v.name, r->b->idx);
    FL_TRY(fl_read_expect(r, ":"));
    fl_read_skip(r);
    FL_TRY(read_type(r, &v));
    for (fl_read_skip(r); *r->at && *r->at != '\n'; fl_read_skip(r))
        FL_TRY(read_flag(r, &v, &param));
    return fl_block_add_var(r->b, &v, &made);
}

/* --- blocks --- */

static fl_err read_block(fl_text_reader *r)
{
    int64_t idx, parent = -1, forward = -1;
    const int64_t next = r->b ? r->b->idx + 1 : 0;
    FL_TRY(fl_read_int(r, next, next, &idx));
    if (idx == FL_READ_BLOCKS)
        return FL_READ_FAIL(r, "more than %d blocks", FL_READ_BLOCKS);
    if (fl_read_accept(r, "parent="))
        FL_TRY(fl_read_int(r, -1, idx - 1, &parent));
    if (fl_read_accept(r, "forward="))
        FL_TRY(fl_read_int(r, -1, FL_READ_BLOCKS, &forward));
    r->b = idx ? fl_program_add_block(r->p, (int)parent)
               : fl_program_block(r->p, 0);
    r->b->forward = (int)forward;
    r->b->had_forward = forward != -1;
    return FL_OK;
}

static fl_err read_statement(fl_text_reader *r)
{
    /* An op may be called block or var: then a bracket follows. */
    const fl_text_reader start = *r;
    if (!r->b && fl_read_word(r, "random_seed"))
        return fl_read_int(r, INT64_MIN, INT64_MAX, &r->p->random_seed);
    if (!r->b && fl_read_word(r, "version"))
        return fl_read_int(r, INT64_MIN, INT64_MAX, &r->p->file_version);
    if (fl_read_word(r, "block") && *r->at == ' ')
        return read_block(r);
    if (!r->b)
        return fl_read_expected(r, "\"block 0\"");
    for (fl_var_word w = FL_WORD_VAR; w < FL_WORDS; w++)
        if (fl_read_word(r, fl_var_words[w])) {
            if (*r->at == ' ')
                return read_var(r, w);
            *r = start;
        }
    *r = start;
    return read_op(r);
}

static fl_err read_program(fl_text_reader *r)
{
    for (;; r->at++, r->line++, r->line_at = r->at) {
        fl_read_skip(r);
        if (*r->at && *r->at != '\n')
            FL_TRY(read_statement(r));
        fl_read_skip(r);
        if (!*r->at)
            break;
        if (*r->at != '\n')
            return fl_read_expected(r, "the end of the line");
        fl_arena_reset(r->a);
    }
    return r->b ? FL_OK : fl_read_expected(r, "\"block 0\"");
}

fl_err fl_program_parse(const fl_registry *reg, const char *text,
                        fl_program **out)
{
    fl_text_reader r = {.at = text, .line_at = text, .line = 1};
    r.p = fl_program_make(reg);
    r.a = fl_arena_new();
    fl_err err = read_program(&r);
    if (!err)
        err = fl_verify_blocks(r.p);
    fl_arena_free(r.a);
    if (err)
        fl_program_free(r.p);
    else
        *out = r.p;
    return err;
}

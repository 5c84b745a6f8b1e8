/* SPDX-License-Identifier: Apache-2.0 */
/* program_text.c - a program as text that people read and fl_program_parse
 * reads back. text.h shows the form. */
#include "graph/text.h"

#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *const fl_var_words[FL_WORDS] = {
    [FL_WORD_VAR] = "var",
    [FL_WORD_DATA] = "data",
    [FL_WORD_PARAM] = "param",
};

const fl_var_flag fl_var_flags[] = {
    {"data", offsetof(fl_var, is_data), .implied = 1 << FL_WORD_DATA},
    {"persistable", offsetof(fl_var, persistable),
     .implied = 1 << FL_WORD_PARAM},
    {"stop_gradient", offsetof(fl_var, stop_gradient),
     .implied = 1 << FL_WORD_DATA},
    {"trainable", offsetof(fl_param_info, trainable), true,
     .implied = 1 << FL_WORD_PARAM},
    {"averaged", offsetof(fl_param_info, do_model_average), true,
     .implied = 1 << FL_WORD_PARAM},
    {"summary", offsetof(fl_param_info, summary), true},
    {0},
};

bool fl_name_is_bare(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_.@/%+$-";
    return *name && strspn(name, letters) == strlen(name);
}

bool fl_kind_has_tensor(fl_kind k)
{
    return k == FL_LOD_TENSOR || k == FL_SELECTED_ROWS ||
           k == FL_LOD_TENSOR_ARRAY;
}

/* --- words --- */

static void put_quoted(fl_str *s, const char *text)
{
    fl_str_add(s, "\"");
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fl_str_printf(s, "\\%c", *c);
        else if (*c == '\n')
            fl_str_add(s, "\\n");
        else if ((unsigned char)*c < ' ')
            fl_str_printf(s, "\\x%02x", (unsigned char)*c);
        else
            fl_str_bytes(s, c, 1);
    }
    fl_str_add(s, "\"");
}

static void put_name(fl_str *s, const char *name)
{
    if (fl_name_is_bare(name))
        fl_str_add(s, name);
    else
        put_quoted(s, name);
}

/* The shortest text that reads back as the same float, and as a float. */
static void put_float(fl_str *s, float f)
{
    char text[32];
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, f);
        if (strtof(text, NULL) == f)
            break;
    }
    fl_str_add(s, text);
    if (isfinite(f) && !strpbrk(text, ".e"))
        fl_str_add(s, ".0");
}

/* --- attributes --- */

static void put_element(fl_str *s, const fl_attr *a, int i)
{
    switch (a->type) {
    case FL_ATTR_INTS:
        fl_str_printf(s, "%lld", (long long)a->longs[i]);
        break;
    case FL_ATTR_LONGS:
        fl_str_printf(s, "%lldl", (long long)a->longs[i]);
        break;
    case FL_ATTR_BLOCKS:
        fl_str_printf(s, "@%lld", (long long)a->longs[i]);
        break;
    case FL_ATTR_FLOATS:
        put_float(s, a->floats[i]);
        break;
    case FL_ATTR_STRINGS:
        put_quoted(s, a->strings[i]);
        break;
    default:
        fl_str_add(s, a->bools[i] ? "true" : "false");
    }
}

static void put_list(fl_str *s, const fl_attr *a)
{
    if (!a->n)
        fl_str_add(s, fl_attr_type_name(a->type));
    fl_str_add(s, "[");
    for (int i = 0; i < a->n; i++) {
        fl_str_add(s, i ? ", " : "");
        put_element(s, a, i);
    }
    fl_str_add(s, "]");
}

static void put_value(fl_str *s, const fl_attr *a)
{
    switch (a->type) {
    case FL_ATTR_INT:
        fl_str_printf(s, "%lld", (long long)a->i);
        break;
    case FL_ATTR_LONG:
        fl_str_printf(s, "%lldl", (long long)a->i);
        break;
    case FL_ATTR_BLOCK:
        fl_str_printf(s, "@%lld", (long long)a->i);
        break;
    case FL_ATTR_FLOAT:
        put_float(s, a->f);
        break;
    case FL_ATTR_STRING:
        put_quoted(s, a->s ? a->s : "");
        break;
    case FL_ATTR_BOOL:
        fl_str_add(s, a->b ? "true" : "false");
        break;
    default:
        put_list(s, a);
    }
}

/* Whether the brief text leaves out the attribute: it has its default, or it
 * only says where in a script the op was made. */
static bool is_noise(const fl_op *op, const fl_attr *a)
{
    const int k = fl_op_attr(op->def, a->name);
    if (k >= 0)
        return !op->def->attr[k].required &&
               fl_attr_equal(&op->def->attr[k], a);
    if (!strcmp(a->name, "op_role"))
        return a->type == FL_ATTR_INT && a->i == FL_ROLE_FORWARD;
    return !strcmp(a->name, "op_namescope") || !strcmp(a->name, "op_callstack");
}

static void put_attrs(fl_str *s, const fl_op *op, bool brief)
{
    int shown = 0;
    for (int i = 0; i < op->desc.n_attr; i++) {
        const fl_attr *a = &op->desc.attr[i];
        if (brief && is_noise(op, a))
            continue;
        fl_str_add(s, shown++ ? ", " : " {");
        put_name(s, a->name);
        fl_str_add(s, "=");
        put_value(s, a);
    }
    if (shown)
        fl_str_add(s, "}");
}

/* --- ops, vars, blocks --- */

static void put_args(fl_str *s, const fl_args *args, int n)
{
    for (int i = 0; i < n; i++) {
        fl_str_add(s, i ? ", " : "");
        put_name(s, args[i].slot);
        fl_str_add(s, args[i].n == 1 ? "=" : "=[");
        for (int j = 0; j < args[i].n; j++) {
            fl_str_add(s, j ? ", " : "");
            put_name(s, args[i].name[j]);
        }
        fl_str_add(s, args[i].n == 1 ? "" : "]");
    }
}

static void put_op(fl_str *s, const fl_op *op, bool brief)
{
    fl_str_add(s, "  ");
    put_name(s, op->desc.type);
    fl_str_add(s, "(");
    put_args(s, op->desc.in, op->desc.n_in);
    fl_str_add(s, ")");
    if (op->desc.n_out)
        fl_str_add(s, " -> ");
    put_args(s, op->desc.out, op->desc.n_out);
    put_attrs(s, op, brief);
    fl_str_add(s, op->is_target ? " target\n" : "\n");
}

static void put_flags(fl_str *s, const fl_var *v, fl_var_word word)
{
    for (const fl_var_flag *f = fl_var_flags; f->name; f++) {
        if (f->of_param && !v->param)
            continue;
        const char *from =
            f->of_param ? (const char *)v->param : (const char *)v;
        const bool is = *(const bool *)(from + f->at);
        const bool implied = f->implied & 1u << word;
        if (is != implied)
            fl_str_printf(s, " %s%s", is ? "" : "!", f->name);
    }
}

static void put_var(fl_str *s, const fl_var *v)
{
    const fl_var_word word = v->param     ? FL_WORD_PARAM
                             : v->is_data ? FL_WORD_DATA
                                          : FL_WORD_VAR;
    char shape[FL_SHAPE_TEXT];
    fl_str_printf(s, "  %s ", fl_var_words[word]);
    put_name(s, v->name);
    fl_str_add(s, ":");
    if (v->kind != FL_LOD_TENSOR)
        fl_str_printf(s, " %s", fl_kind_name(v->kind));
    if (fl_kind_has_tensor(v->kind) || v->dtype || v->shape.rank)
        fl_str_printf(s, " %s%s", fl_dtype_name(v->dtype),
                      fl_shape_text(&v->shape, shape));
    if (v->lod_level)
        fl_str_printf(s, " lod=%d", v->lod_level);
    if (v->param && v->param->learning_rate != 1) {
        fl_str_add(s, " lr=");
        put_float(s, v->param->learning_rate);
    }
    put_flags(s, v, word);
    fl_str_add(s, "\n");
}

static void put_block(fl_str *s, const fl_block *b, bool brief)
{
    fl_str_printf(s, "block %d", b->idx);
    if (b->parent != -1)
        fl_str_printf(s, " parent=%d", b->parent);
    if (b->forward != -1)
        fl_str_printf(s, " forward=%d", b->forward);
    fl_str_add(s, "\n");
    for (fl_entry *e = NULL; (e = fl_map_next(&b->vars, e));)
        put_var(s, e->value);
    for (int64_t i = 0; i < b->ops.n; i++)
        put_op(s, b->ops.at[i], brief);
}

static char *text_of(const fl_program *p, bool brief)
{
    fl_str s = {0};
    if (p->random_seed)
        fl_str_printf(&s, "random_seed %lld\n", (long long)p->random_seed);
    if (p->file_version)
        fl_str_printf(&s, "version %lld\n", (long long)p->file_version);
    for (int64_t i = 0; i < p->blocks.n; i++)
        put_block(&s, p->blocks.at[i], brief);
    return fl_str_take(&s);
}

char *fl_program_text(const fl_program *p)
{
    return text_of(p, false);
}

char *fl_program_brief(const fl_program *p)
{
    return text_of(p, true);
}

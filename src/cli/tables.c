/* SPDX-License-Identifier: Apache-2.0 */
/* tables.c - operators, layers and optimisers as pages of the docs. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static void print_slots(const fl_slot *slots, int n)
{
    for (int i = 0; i < n; i++)
        printf("%s%s%s%s%s", i ? ", " : "", slots[i].name,
               slots[i].flags & FL_MANY ? "*" : "",
               slots[i].flags & FL_OPTIONAL ? "?" : "",
               slots[i].flags & FL_INTERMEDIATE ? "~" : "");
}

static void print_default(const fl_attr *a)
{
    if (a->required)
        printf("required");
    else if (a->type == FL_ATTR_FLOAT)
        printf("%g", (double)a->f);
    else if (a->type == FL_ATTR_BOOL)
        printf("%s", a->b ? "true" : "false");
    else if (a->type == FL_ATTR_STRING)
        printf("\"%s\"", a->s ? a->s : "");
    else if (a->type == FL_ATTR_INT || a->type == FL_ATTR_LONG)
        printf("%lld", (long long)a->i);
    else
        printf("%d values", a->n);
}

static bool is_gradient(const char *type)
{
    const char *end = strstr(type, "_grad");
    return end && (!end[5] || end[5] == '2');
}

void fl_cli_print_ops(fl_engine *e)
{
    const fl_op_info *op;
    int n = fl_op_table(e, &op);
    puts(
        "# Operators\n\nMade by `paddle show --ops`. `*` takes a list, `?` may "
        "be absent, `~` is for the gradient only.\n\n"
        "| op | inputs | outputs | attributes | gradient |\n"
        "|---|---|---|---|---|");
    for (int i = 0; i < n; i++) {
        if (is_gradient(op[i].type))
            continue;
        printf("| %s | ", op[i].type);
        print_slots(op[i].in, op[i].n_in);
        printf(" | ");
        print_slots(op[i].out, op[i].n_out);
        printf(" | ");
        for (int j = 0; j < op[i].n_attr; j++) {
            printf("%s%s %s=", j ? ", " : "",
                   fl_attr_type_name(op[i].attr[j].type), op[i].attr[j].name);
            print_default(&op[i].attr[j]);
        }
        printf(" | %s |\n", op[i].differentiable ? "yes" : "no");
    }
}

/* Which member of fl_arg a C program sets. */
static const char *member(fl_arg_type t)
{
    static const char *const names[] = {
        [FL_ARG_VAR] = ".var",
        [FL_ARG_VARS] = ".vars",
        [FL_ARG_INT] = ".i",
        [FL_ARG_FLOAT] = ".f",
        [FL_ARG_BOOL] = ".b",
        [FL_ARG_STR] = ".s",
        [FL_ARG_DTYPE] = ".i",
        [FL_ARG_INTS] = ".ints",
        [FL_ARG_FLOATS] = ".floats",
        [FL_ARG_STRS] = ".strs",
        [FL_ARG_PARAM] = ".attr",
        [FL_ARG_INIT] = ".init",
        [FL_ARG_TENSOR] = ".tensor",
        [FL_ARG_REGULARIZER] = ".regularizer",
        [FL_ARG_CLIP] = ".clip",
        [FL_ARG_FLOAT_OR_VAR] = ".f or .var",
        [FL_ARG_INT_OR_VAR] = ".i or .var",
        [FL_ARG_VAR_OR_TENSOR] = ".var or .tensor",
        [FL_ARG_INT_OR_INTS] = ".i or .ints",
    };
    return names[t];
}

static void print_argument(const fl_arg_def *a)
{
    printf("- `%s` (%s, `%s`", a->name, fl_arg_type_name(a->type),
           member(a->type));
    if (a->value)
        printf(", default `%s`", a->value);
    printf("): %s\n", a->doc);
}

static void print_signature(const fl_signature *s, bool returns)
{
    printf("\n### %s\n\n%s\n\n", s->name, s->doc);
    for (int i = 0; i < s->n_args; i++)
        print_argument(&s->args[i]);
    if (returns)
        printf("\nReturns: %s\n", s->returns ? s->returns : "one variable");
}

void fl_cli_print_layers(fl_engine *e)
{
    const fl_signature *row;
    int n = fl_layer_table(e, &row);
    puts("# Layers and optimisers\n\nMade by `paddle show --layers`. In "
         "brackets: the type of the argument, the member of `fl_arg` that a C "
         "program sets (lists have `.n`), and the default; an argument without "
         "a default is required. `[a]` is a list.\n\n## Layers");
    for (int i = 0; i < n; i++)
        print_signature(&row[i], true);
    n = fl_optimizer_table(e, &row);
    puts("\n## Optimisers");
    for (int i = 0; i < n; i++)
        print_signature(&row[i], false);
}

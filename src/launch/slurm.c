/* SPDX-License-Identifier: Apache-2.0 */
/* slurm.c - the hosts of a job of Slurm.
 *
 * Slurm abbreviates their names: "n[1-3,7],gpu[08-11]-[a,b]". A number keeps
 * its leading zeros, and text after a bracket belongs to each of its hosts.
 * The launcher reaches the hosts by srun as it does others by ssh (hosts.c).
 * */
#include "launch/launch.h"

#include "base/flag.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MOST_HOSTS = 1000,
    MOST_BYTES = 4096 /* longest name with its brackets */
};

/* A list that is expanded, and the names so far: "n1,n2". */
typedef struct expansion {
    const char *list;
    fl_str *out;
    int n;
} expansion;

static fl_err fail_list(const expansion *x)
{
    return fl_fail(FL_EINVAL,
                   "launch: \"%s\" is not a list of hosts as Slurm writes it: "
                   "n[1-3,7],m1; at most %d hosts are expanded",
                   x->list, MOST_HOSTS);
}

static fl_err add_name(expansion *x, const char *name)
{
    if (!*name || strpbrk(name, "[]") || x->n == MOST_HOSTS)
        return fail_list(x);
    fl_str_printf(x->out, "%s%s", x->n++ ? "," : "", name);
    return FL_OK;
}

/* The number of bytes up to a comma outside brackets. */
static size_t size_of_item(const char *at)
{
    size_t n = 0;
    for (int depth = 0; at[n] && (depth || at[n] != ','); n++)
        depth += at[n] == '[' ? 1 : at[n] == ']' ? -1 : 0;
    return n;
}

static fl_err expand_item(expansion *x, const char *item);

/* One name of a range, with the brackets that may follow it. */
static fl_err expand_name(expansion *x, const char *before, int n,
                          const char *middle, const char *after)
{
    fl_str name = {0};
    fl_str_printf(&name, "%.*s%s%s", n, before, middle, after);
    const fl_err err = expand_item(x, name.at);
    fl_str_fini(&name);
    return err;
}

/* "1-3" or "7" between `before` and `after`. */
static fl_err expand_range(expansion *x, const char *before, int n,
                           const char *range, int size, const char *after)
{
    char text[32];
    const char *dash = memchr(range, '-', (size_t)size);
    if (size >= (int)sizeof text)
        return fail_list(x);
    snprintf(text, sizeof text, "%.*s", size, range);
    if (!dash)
        return expand_name(x, before, n, text, after);
    const long from = strtol(range, NULL, 10), to = strtol(dash + 1, NULL, 10);
    const int digits = *range == '0' ? (int)(dash - range) : 1;
    if (!isdigit((unsigned char)*range) || !isdigit((unsigned char)dash[1]) ||
        to < from || to - from >= MOST_HOSTS)
        return fail_list(x);
    for (long i = from; i <= to; i++) {
        snprintf(text, sizeof text, "%0*ld", digits, i);
        FL_TRY(expand_name(x, before, n, text, after));
    }
    return FL_OK;
}

/* Append one host, or those of its first bracket. Later brackets are expanded
 * by recursion. */
static fl_err expand_item(expansion *x, const char *item)
{
    const char *open = strchr(item, '[');
    const char *close = open ? strchr(open, ']') : NULL;
    if (!open)
        return add_name(x, item);
    if (!close)
        return fail_list(x);
    for (const char *at = open + 1; at <= close; at++) {
        const int n = (int)strcspn(at, ",]");
        FL_TRY(expand_range(x, item, (int)(open - item), at, n, close + 1));
        at += n;
    }
    return FL_OK;
}

fl_err fl_slurm_expand(const char *list, fl_str *out)
{
    expansion x = {list, out, 0};
    while (*list) {
        char item[MOST_BYTES];
        const size_t n = size_of_item(list);
        if (n >= sizeof item)
            return fail_list(&x);
        memcpy(item, list, n);
        item[n] = 0;
        FL_TRY(expand_item(&x, item));
        list += n + (list[n] == ',');
    }
    return x.n ? FL_OK : fail_list(&x);
}

fl_err fl_slurm_hosts(fl_launch *l, const char **hosts, bool *other)
{
    const char *list = fl_flag_text("SLURM_JOB_NODELIST");
    const char *task = fl_flag_text("SLURM_PROCID");
    fl_str names = {0};
    if (!list)
        list = fl_flag_text("SLURM_NODELIST");
    if (l->opts->hosts || l->opts->mpi)
        return fl_fail(FL_EINVAL, "launch: --slurm takes the hosts from Slurm; "
                                  "leave out --hosts and --mpi");
    if (!list)
        return fl_fail(FL_EINVAL,
                       "launch: SLURM_JOB_NODELIST is not set; --slurm needs a "
                       "job of Slurm: start it by salloc, sbatch or srun");
    *other = task && atoi(task) > 0;
    const fl_err err = fl_slurm_expand(list, &names);
    if (!err)
        *hosts = fl_arena_strdup(l->arena, names.at);
    fl_str_fini(&names);
    return err;
}

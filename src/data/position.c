/* SPDX-License-Identifier: Apache-2.0 */
/* position.c - a sorted list of parts of which some bytes are used. */
#include "data/position.h"

#include <stdlib.h>
#include <string.h>

void fl_uses_copy(fl_uses *to, const fl_uses *from)
{
    to->n = 0;
    for (int64_t i = 0; i < from->n; i++)
        fl_push(to, from->at[i]);
}

void fl_position_fini(fl_position *p)
{
    fl_vec_fini(&p->uses);
    *p = (fl_position){0};
}

void fl_position_copy(fl_position *to, const fl_position *from)
{
    to->first = from->first;
    fl_uses_copy(&to->uses, &from->uses);
}

static bool is_more(const fl_used *a, const fl_used *b)
{
    return b->bytes != FL_USED_ALL &&
           (a->bytes == FL_USED_ALL || a->bytes > b->bytes);
}

void fl_position_add(fl_position *p, fl_used use)
{
    int64_t i = 0;
    if (use.part < p->first)
        return;
    while (i < p->uses.n && p->uses.at[i].part < use.part)
        i++;
    if (i == p->uses.n || p->uses.at[i].part != use.part)
        fl_insert(&p->uses, i, use);
    else if (is_more(&use, &p->uses.at[i]))
        p->uses.at[i] = use;
    while (p->uses.n && p->uses.at[0].part == p->first &&
           p->uses.at[0].bytes == FL_USED_ALL) {
        fl_remove(&p->uses, 0);
        p->first++;
    }
}

fl_used fl_position_find(const fl_position *p, int64_t part)
{
    if (part < p->first)
        return (fl_used){.part = part, .bytes = FL_USED_ALL};
    for (int64_t i = 0; i < p->uses.n; i++)
        if (p->uses.at[i].part == part)
            return p->uses.at[i];
    return (fl_used){.part = part};
}

void fl_position_text(const fl_position *p, fl_str *to)
{
    fl_str_printf(to, "%lld", (long long)p->first);
    for (int64_t i = 0; i < p->uses.n; i++) {
        const fl_used *u = &p->uses.at[i];
        if (u->bytes == FL_USED_ALL)
            fl_str_printf(to, " %lld:all", (long long)u->part);
        else
            fl_str_printf(to, " %lld:%lld:%lld", (long long)u->part,
                          (long long)u->bytes, (long long)u->lines);
    }
}

/* Read a number that has only digits, and the character after it. */
static bool read_number(const char **at, char end, int64_t *n)
{
    char *stop;
    if (**at < '0' || **at > '9')
        return false;
    *n = strtoll(*at, &stop, 10);
    if (*stop != end && !(end == ' ' && !*stop))
        return false;
    *at = stop + (*stop != 0);
    return true;
}

static bool read_use(const char **at, fl_used *u)
{
    if (!read_number(at, ':', &u->part))
        return false;
    if (!strncmp(*at, "all", 3) && (!(*at)[3] || (*at)[3] == ' ')) {
        u->bytes = FL_USED_ALL;
        *at += 3 + ((*at)[3] != 0);
        return true;
    }
    return read_number(at, ':', &u->bytes) && read_number(at, ' ', &u->lines);
}

fl_err fl_position_read(fl_position *p, const char *text)
{
    const char *at = text;
    fl_used u = {0};
    *p = (fl_position){0};
    bool good = read_number(&at, ' ', &p->first);
    while (good && *at) {
        good = read_use(&at, &u);
        if (good)
            fl_position_add(p, u);
    }
    if (good)
        return FL_OK;
    fl_position_fini(p);
    return fl_fail(FL_EPROTO, "\"%s\" is not a position in data", text);
}

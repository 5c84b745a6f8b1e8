/* SPDX-License-Identifier: Apache-2.0 */
/* role_fuzz.c - makes a role from an environment of any bytes. A line is a
 * variable: its first byte selects a known name, or, if it is larger, the line
 * itself is "NAME=value". The role must be consistent and printable. */
#include "base/arena.h"

#include "cluster/role.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    LINES = 16
};

static const char *const names[] = {
    "TRAINING_ROLE",
    "PADDLE_TRAINING_ROLE",
    "PADDLE_TRAINER_ID",
    "TRAINER_ID",
    "PADDLE_TRAINERS_NUM",
    "PADDLE_TRAINERS",
    "TRAINERS",
    "PADDLE_PSERVERS_IP_PORT_LIST",
    "PSERVERS",
    "PADDLE_CURRENT_ENDPOINT",
    "CURRENT_ENDPOINT",
    "PADDLE_TRAINER_ENDPOINTS",
    "PADDLE_PSERVERS",
    "PADDLE_PORT",
    "PADDLE_PSERVER_IPS",
    "PADDLE_PSERVER_PORT",
    "PADDLE_INIT_PSERVERS",
    "PADDLE_INIT_PORT",
    "POD_IP",
    "PADDLE_CURRENT_IP",
    "PADDLE_TRAINER_IPS",
    "PADDLE_INIT_TRAINER_ID",
    "PADDLE_INIT_NUM_GRADIENT_SERVERS",
};

typedef struct variables {
    fl_arena *arena;
    const char *line[LINES]; /* "NAME=value" */
    int n;
} variables;

static void must(bool ok)
{
    if (!ok)
        abort();
}

static const char *get(void *user, const char *name)
{
    const variables *v = user;
    const size_t n = strlen(name);
    for (int i = 0; i < v->n; i++)
        if (!strncmp(v->line[i], name, n) && v->line[i][n] == '=')
            return v->line[i] + n + 1;
    return NULL;
}

static const char *at(void *user, int i)
{
    const variables *v = user;
    return i < v->n ? v->line[i] : NULL;
}

static void add_line(variables *v, const char *text, int n)
{
    const unsigned which = n ? (unsigned char)*text : 0;
    if (!n || v->n == LINES)
        return;
    v->line[v->n++] = which < sizeof names / sizeof *names
                          ? fl_arena_printf(v->arena, "%s=%.*s", names[which],
                                            n - 1, text + 1)
                          : fl_arena_printf(v->arena, "%.*s", n, text);
}

static void check_role(const fl_role *r)
{
    char *text = fl_role_text(r);
    must(strlen(text) > 0);
    must(r->trainers >= 0 && r->trainer_id >= -1);
    must(r->mode != FL_MODE_PSERVER || r->n_endpoints > 0);
    for (int i = 0; i < r->n_endpoints; i++)
        must(strchr(r->endpoints[i], ':') != NULL);
    fl_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    variables v = {.arena = fl_arena_new()};
    const char *text = (const char *)data, *end = text + size;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        stop = stop ? stop : end;
        add_line(&v, text, (int)(stop - text));
        text = stop + 1;
    }
    fl_role r;
    if (!fl_role_resolve(&r, NULL, &(fl_env){get, at, &v}))
        check_role(&r);
    fl_role_fini(&r);
    fl_arena_free(v.arena);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* transpile.c - cuts a training program into programs for trainers and servers.
 *
 * All programs are made at once, so that an error is reported here and not when
 * a server asks for its program. */
#include "transpile/transpile.h"

#include "base/str.h"

/* --- helpers --- */

fl_desc *fl_cut_desc(fl_cut *c, const char *type, int role)
{
    fl_desc *d = fl_desc_new(c->arena, type);
    fl_desc_set_attr(d, &(fl_attr){"op_role", FL_ATTR_INT, .i = role});
    return d;
}

const char **fl_share_texts(fl_cut *c, const fl_share *s, fl_slice_text which)
{
    const char **at = fl_arena_alloc(c->arena, (size_t)s->n * sizeof *at);
    for (int i = 0; i < s->n; i++) {
        const fl_slice *p = &s->slice[i];
        at[i] = which == FL_SLICE_PARAM  ? p->param
                : which == FL_SLICE_SENT ? p->sent
                                         : c->servers[p->server];
    }
    return at;
}

const int64_t *fl_share_rows(fl_cut *c, const fl_share *s)
{
    int64_t *at = fl_arena_alloc(c->arena, (size_t)s->n * sizeof *at);
    for (int i = 0; i < s->n; i++)
        at[i] = s->slice[i].shape.dim[0];
    return at;
}

fl_err fl_cut_token(fl_cut *c, fl_block *b, const char **out)
{
    fl_var *v;
    int64_t i = 0;
    const char *name;
    do
        name = fl_arena_printf(c->arena, "__control_var@%lld", (long long)i++);
    while (fl_block_var(b, name));
    FL_TRY(fl_block_add_var(b, &(fl_var){.name = name, .dtype = FL_F32}, &v));
    *out = v->name;
    return FL_OK;
}

int64_t fl_cut_last_writer(const fl_block *b, const char *name)
{
    int64_t i = b->ops.n - 1;
    while (i >= 0 && !fl_desc_writes(&b->ops.at[i]->desc, name))
        i--;
    return i;
}

/* --- the cut --- */

/* Add a text to a hash of 128 bits: FNV-1a and a second function. The NUL
 * counts, so that "a", "b" differs from "ab". */
static void digest_text(uint64_t sum[2], const char *text)
{
    const size_t n = strlen(text) + 1;
    for (size_t i = 0; i < n; i++) {
        sum[0] = (sum[0] ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
        sum[1] =
            (sum[1] + (unsigned char)text[i]) * UINT64_C(0x9e3779b97f4a7c15);
        sum[1] ^= sum[1] >> 32;
    }
}

/* Compute the digest of the tables. Each server holds rows of every table, so
 * the pieces of server 0 name them all. */
static void digest_tables(const fl_cut *c, fl_placement *placement)
{
    char shape[FL_SHAPE_TEXT];
    placement->tables[0] = UINT64_C(0xcbf29ce484222325);
    for (int64_t i = 0; i < c->pieces.n; i++) {
        const fl_piece *k = &c->pieces.at[i];
        if (k->server || k->first != FL_BY_ID)
            continue;
        digest_text(placement->tables, k->var);
        digest_text(placement->tables, fl_shape_text(&k->shape, shape));
    }
}

static void digest_program(uint64_t sum[2], const fl_program *p)
{
    char *brief = fl_program_brief(p);
    digest_text(sum, brief);
    fl_mem_free(brief);
}

/* Compute the digest of the job. It depends on the programs of the servers
 * only: the programs of trainers may differ. If trainers bring the servers'
 * programs (v2), it includes the startup programs, which set the learning rate.
 */
static void digest_job(const fl_cut *c, fl_placement *placement)
{
    fl_str text = {0};
    fl_str_printf(&text, "%d %d", placement->trainers, placement->async);
    if (c->opts.serial)
        fl_str_printf(&text, " %d", c->opts.serial);
    for (int i = 0; i < c->n_servers; i++)
        fl_str_printf(&text, " %s", c->servers[i]);
    placement->digest[0] = UINT64_C(0xcbf29ce484222325);
    digest_text(placement->digest, text.at);
    fl_str_fini(&text);
    for (int i = 0; i < c->n_servers; i++) {
        digest_program(placement->digest, c->server[i]);
        if (c->opts.serial)
            digest_program(placement->digest, c->server_startup[i]);
    }
}

static void set_placement(fl_program *p, const fl_placement *like)
{
    fl_placement *own = fl_placement_new(like);
    fl_program_set_job(p, &own->handle);
    fl_handle_unref(&own->handle);
}

static void mark_absent(const fl_cut *c, fl_program *p)
{
    for (int64_t i = 0; i < c->absent.n; i++) {
        fl_var *v = fl_block_var(fl_program_block(p, 0), c->absent.at[i]);
        if (v)
            v->absent = true;
    }
}

static fl_err set_placements(fl_cut *c)
{
    void *origin;
    size_t size;
    fl_placement placement = {
        .n_servers = c->n_servers,
        .servers = c->servers,
        .server = -1,
        .trainer_id = c->trainer_id,
        .trainers = c->opts.trainers ? c->opts.trainers : 1,
        .async = c->opts.async,
        .half_async = c->opts.half_async,
    };
    digest_job(c, &placement);
    digest_tables(c, &placement);
    placement.pieces = c->pieces.at;
    placement.n_pieces = (int)c->pieces.n;
    set_placement(c->trainer_startup, &placement);
    for (int i = 0; i < c->n_servers; i++) {
        placement.server = i;
        set_placement(c->server[i], &placement);
        set_placement(c->server_startup[i], &placement);
    }
    FL_TRY(fl_program_encode(c->main, &origin, &size));
    placement.server = -1;
    placement.origin = origin;
    placement.origin_size = size;
    set_placement(c->trainer, &placement);
    fl_mem_free(origin);
    return FL_OK;
}

static fl_err make_all(fl_cut *c)
{
    FL_TRY(fl_cut_plan(c));
    FL_TRY(fl_cut_make_trainer(c));
    FL_TRY(fl_cut_make_trainer_startup(c));
    const size_t size = (size_t)c->n_servers * sizeof(fl_program *);
    c->server = fl_arena_alloc(c->arena, size);
    c->server_startup = fl_arena_alloc(c->arena, size);
    for (int i = 0; i < c->n_servers; i++)
        FL_TRY(fl_cut_make_server(c, i));
    fl_cut_find_absent(c);
    mark_absent(c, c->trainer);
    mark_absent(c, c->trainer_startup);
    return set_placements(c);
}

fl_err fl_transpile(const fl_program *main, const fl_program *startup,
                    const fl_transpile_opts *opts, fl_cut **cut)
{
    fl_cut *c = fl_mem_alloc(sizeof *c);
    *c = (fl_cut){.arena = fl_arena_new(), .opts = *opts};
    c->trainer_id = opts->trainer_id;
    if (c->trainer_id == FL_ANY_ID)
        c->opts.trainer_id = 0;
    if (opts->half_async) /* one op that waits, then one recv for each parameter
                           */
        c->opts.async = c->opts.runtime_split_send_recv = true;
    c->main = fl_program_clone(main, false);
    c->startup = fl_program_clone(startup, false);
    const fl_err err = make_all(c);
    memset(&c->opts, 0, sizeof c->opts); /* its texts belong to the caller */
    if (err) {
        fl_cut_free(c);
        return err;
    }
    *cut = c;
    return FL_OK;
}

void fl_cut_free(fl_cut *c)
{
    if (!c)
        return;
    for (int i = 0; c->server && i < c->n_servers; i++) {
        fl_program_free(c->server[i]);
        fl_program_free(c->server_startup[i]);
    }
    fl_program_free(c->trainer);
    fl_program_free(c->trainer_startup);
    fl_program_free(c->main);
    fl_program_free(c->startup);
    fl_vec_fini(&c->updates);
    fl_vec_fini(&c->rates);
    fl_vec_fini(&c->shares);
    fl_vec_fini(&c->tables);
    fl_vec_fini(&c->pieces);
    fl_vec_fini(&c->absent);
    fl_arena_free(c->arena);
    fl_mem_free(c);
}

fl_program *fl_cut_trainer(const fl_cut *c)
{
    return c->trainer;
}

fl_program *fl_cut_trainer_startup(const fl_cut *c)
{
    return c->trainer_startup;
}

int fl_cut_endpoints(const fl_cut *c, const char *const **out)
{
    *out = c->servers;
    return c->n_servers;
}

fl_err fl_cut_server(const fl_cut *c, const char *endpoint,
                     fl_program **program, fl_program **startup)
{
    fl_str all = {0};
    for (int i = 0; i < c->n_servers; i++) {
        if (!strcmp(c->servers[i], endpoint)) {
            *program = c->server[i];
            *startup = c->server_startup[i];
            fl_str_fini(&all);
            return FL_OK;
        }
        fl_str_printf(&all, "%s%s", i ? ", " : "", c->servers[i]);
    }
    const fl_err err = fl_fail(
        FL_ENOENT, "transpile: \"%s\" is not among the servers %s%s", endpoint,
        all.at, *endpoint == ':' ? "; is PADDLE_CURRENT_IP set?" : "");
    fl_str_fini(&all);
    return err;
}

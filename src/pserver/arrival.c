/* SPDX-License-Identifier: Apache-2.0 */
/* arrival.c - programs and start values of a job that comes over the network.
 *
 * Easy to get wrong: a program names shapes twice, in its variables and in the
 * attributes of the ops that make them. Both are checked before an op runs. */
#include "pserver/arrival.h"

#include "base/endpoint.h"
#include "base/str.h"
#include "wire/codec.h"
#include "wire/parcel.h"

enum {
    PROGRAM_MOST = 64 << 20, /* bytes of an encoded program: a model with 10,000
                                parameters needs a tenth of it */
    LIST_MOST = 1 << 20,     /* bytes of the list of servers */
    SERVERS_MOST = 4096,
    PARTS_MOST = 1 << 20,
};

#define BYTES_MOST (INT64_C(16) << 30) /* as FLUID_STAGED */

/* Bytes of part 1, with a NUL at the end that is not counted. */
typedef struct text {
    char *at;
    size_t n;
} text;

struct fl_arrival {
    fl_arrival_opts opts;
    fl_arena *arena;     /* holds the texts */
    int64_t have, count; /* parts */
    fl_id job;
    text servers, program_text, startup_text;
    const char *about;
    fl_str values; /* names of variables that the startup program has not made,
                      each with a NUL at its end */
    fl_program *program, *startup;
    const fl_op *op;
    fl_scope *scope;
};

fl_arrival *fl_arrival_new(const fl_arrival_opts *opts)
{
    fl_arrival *a = fl_mem_alloc(sizeof *a);
    *a = (fl_arrival){.opts = *opts, .arena = fl_arena_new()};
    if (!a->opts.most)
        a->opts.most = BYTES_MOST;
    a->scope = fl_scope_new();
    return a;
}

void fl_arrival_free(fl_arrival *a)
{
    if (!a)
        return;
    fl_scope_free(a->scope);
    fl_program_free(a->program);
    fl_program_free(a->startup);
    fl_str_fini(&a->values);
    fl_arena_free(a->arena);
    fl_mem_free(a);
}

/* --- what a program may hold --- */

/* Operators of updates, learning rates and start values, besides update rules
 * and operators that work by element. None of them touches anything but its
 * variables. */
static const char *const allowed[] = {
    "fill_constant",
    "assign_value",
    "uniform_random",
    "gaussian_random",
    "truncated_gaussian_random",
    "slice",
    "increment",
    "pow",
    "exp",
    "log",
    "sqrt",
    "square",
    "floor",
    "ceil",
    "abs",
    "cos",
    "reciprocal",
    "clip_by_norm",
    "squared_l2_norm",
    "less_than",
    "less_equal",
    "greater_than",
    "greater_equal",
    "equal",
    "not_equal",
    "logical_not",
    "logical_and",
    "logical_or",
    "conditional_block",
    "v2_schedule",
};

static bool is_allowed(const fl_op *op)
{
    const fl_op_def *def = op->def;
    if (!def || def->flags & (FL_OP_LOCAL | FL_OP_HIDDEN | FL_OP_RANKS))
        return false;
    if (def->rule || def->flags & FL_OP_BY_ELEMENT)
        return true;
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (!strcmp(def->type, allowed[i]))
            return true;
    return false;
}

/* Add the bytes of a shape to *bytes, unless that exceeds the limit. */
static fl_err add_bytes(const fl_arrival *a, const char *name, int n,
                        const int64_t *dim, fl_dtype type, int64_t *bytes)
{
    const int64_t left = a->opts.most - *bytes;
    int64_t size = (int64_t)fl_dtype_size(type);
    for (int i = 0; i < n; i++) {
        const int64_t d = dim[i] < 0 ? 1 : dim[i]; /* -1: known by its ops */
        if (d && size > left / d)
            return fl_fail(FL_ENOMEM,
                           "setup: with \"%s\" the variables have more than "
                           "%lld bytes; start more servers",
                           name, (long long)a->opts.most);
        size *= d;
    }
    *bytes += size;
    return FL_OK;
}

static fl_err check_op(const fl_arrival *a, const fl_op *op, const char *what)
{
    const fl_attr *shape = fl_desc_attr(&op->desc, "shape");
    int64_t bytes = 0;
    if (!is_allowed(op))
        return fl_fail(FL_EINVAL,
                       "setup: the %s program has an op \"%s\", which a "
                       "server does not take from trainers",
                       what, op->desc.type);
    if (shape && (shape->type == FL_ATTR_LONGS || shape->type == FL_ATTR_INTS))
        return add_bytes(a, op->desc.type, shape->n, shape->longs, FL_F64,
                         &bytes);
    return FL_OK;
}

static fl_err check_program(fl_arrival *a, const fl_program *p,
                            const char *what)
{
    int64_t bytes = 0;
    FL_TRY(fl_program_verify(p));
    for (int64_t i = 0; i < p->blocks.n; i++) {
        const fl_block *b = p->blocks.at[i];
        for (fl_entry *e = NULL; (e = fl_map_next(&b->vars, e));) {
            const fl_var *v = e->value;
            FL_TRY(add_bytes(a, v->name, v->shape.rank, v->shape.dim, v->dtype,
                             &bytes));
        }
        for (int64_t k = 0; k < b->ops.n; k++)
            if (b->ops.at[k] != a->op)
                FL_TRY(check_op(a, b->ops.at[k], what));
    }
    return FL_OK;
}

/* --- part 1 --- */

static fl_err read_text(fl_arrival *a, const fl_parcel *p, const char *name,
                        size_t most, text *out)
{
    const fl_item *item = fl_parcel_find(p, name);
    if (!item || item->kind != FL_LOD_TENSOR || item->dtype != FL_U8)
        return fl_fail(FL_EPROTO,
                       "setup: part 1 has no bytes under the name \"%s\"",
                       name);
    out->n = item->data.size;
    if (out->n > most)
        return fl_fail(FL_EPROTO,
                       "setup: \"%s\" has %zu bytes, expected at most %zu",
                       name, out->n, most);
    out->at = fl_arena_alloc(a->arena, out->n + 1);
    fl_bytes_copy(item->data, 0, out->at, out->n);
    out->at[out->n] = 0;
    return FL_OK;
}

static fl_err read_program(fl_arrival *a, const fl_parcel *p, const char *name,
                           text *bytes, fl_program **out)
{
    FL_TRY(read_text(a, p, name, PROGRAM_MOST, bytes));
    return fl_program_decode(a->opts.env->registry, name, bytes->at, bytes->n,
                             out);
}

/* The one op of the global block. */
static fl_err find_listen(fl_arrival *a)
{
    const fl_block *b = fl_program_block(a->program, 0);
    if (b->ops.n != 1 || strcmp(b->ops.at[0]->desc.type, "listen_and_serv"))
        return fl_fail(
            FL_EINVAL,
            "setup: the program is not that of a server: its global block "
            "has %lld ops, expected one listen_and_serv",
            (long long)b->ops.n);
    a->op = b->ops.at[0];
    return FL_OK;
}

static fl_err split_servers(fl_arrival *a, const char ***out, int *n)
{
    char *at = fl_arena_strdup(a->arena, a->servers.at);
    *out = fl_arena_alloc(a->arena, SERVERS_MOST * sizeof **out);
    *n = 0;
    for (char *next; at; at = next) {
        char *comma = strchr(at, ',');
        next = comma ? comma + 1 : NULL;
        if (comma)
            *comma = 0;
        FL_TRY(fl_endpoint_check(at, "setup: server "));
        if (*n == SERVERS_MOST)
            return fl_fail(FL_EPROTO,
                           "setup: the list has more than %d servers",
                           SERVERS_MOST);
        (*out)[(*n)++] = at;
    }
    return FL_OK;
}

/* fl_job_about begins with three lines that the placement does not keep. */
static const char *skip_lines(const char *at, int n)
{
    for (; n && *at; at++)
        n -= *at == '\n';
    return at;
}

static fl_err check_numbers(const fl_arrival *a, int64_t trainers, int server,
                            int servers)
{
    if (trainers != a->opts.trainers)
        return fl_fail(FL_EINVAL,
                       "setup: this server was started for %d trainers "
                       "(--num_gradient_servers=%d), and trainer 0 says %lld "
                       "(num_gradient_servers of paddle.init)",
                       a->opts.trainers, a->opts.trainers, (long long)trainers);
    if (server < 0 || server >= servers)
        return fl_fail(FL_EPROTO,
                       "setup: trainer 0 calls this server %d, but its list "
                       "has %d servers, counted from 0",
                       server, servers);
    return FL_OK;
}

static fl_err set_placement(fl_arrival *a, const fl_parcel *p, const fl_msg *m)
{
    const fl_attr *sync = fl_desc_attr(&a->op->desc, "sync_mode");
    const fl_attr *fanin = fl_desc_attr(&a->op->desc, "Fanin");
    const int64_t trainers = fanin ? fanin->i : 1;
    const char **servers;
    int n;
    FL_TRY(read_text(a, p, "servers", LIST_MOST, &a->servers));
    FL_TRY(split_servers(a, &servers, &n));
    FL_TRY(check_numbers(a, trainers, m->server, n));
    fl_placement *place = fl_placement_new(&(fl_placement){
        .n_servers = n,
        .servers = servers,
        .server = m->server,
        .trainer_id = FL_ANY_ID,
        .trainers = (int)trainers,
        .async = !sync || !sync->b,
        .digest = {m->job.hi, m->job.lo - FL_PROTOCOL},
    });
    a->about = fl_arena_strdup(a->arena, m->about ? m->about : "");
    place->about = fl_arena_strdup(place->arena, skip_lines(a->about, 3));
    fl_program_set_job(a->program, &place->handle);
    fl_program_set_job(a->startup, &place->handle);
    fl_handle_unref(&place->handle);
    return FL_OK;
}

static bool is_kept(const fl_program *startup)
{
    return true;
}

static fl_err run_startup(fl_arrival *a)
{
    fl_exec_env env = *a->opts.env;
    env.trust = false;
    env.service = NULL;
    env.worlds = NULL;
    env.kept = a->opts.kept ? is_kept : NULL;
    fl_exe *exe = fl_exe_make(&env);
    const fl_err err = fl_exe_run(exe, a->startup, a->scope, 0, NULL, 0, NULL);
    fl_exe_free(exe);
    return err;
}

/* --- start values --- */

static fl_err bad_value(const fl_item *item, const char *why)
{
    char shape[FL_SHAPE_TEXT];
    return fl_fail(FL_EINVAL, "setup: the start value \"%s\" (%s%s) %s",
                   item->name, fl_dtype_word(item->dtype),
                   fl_shape_text(&item->shape, shape), why);
}

/* A variable that may have a start value; NULL: there is none of that name. */
static const fl_var *find_variable(const fl_arrival *a, const char *name)
{
    const fl_var *v = fl_block_var(fl_program_block(a->program, 0), name);
    return v && v->persistable && v->kind == FL_LOD_TENSOR ? v : NULL;
}

/* The tensor of a variable, with memory. */
static fl_err make_tensor(fl_arrival *a, const fl_var *v, fl_tensor **out)
{
    fl_value *value = fl_scope_var(a->scope, v->name);
    if (!value->tensor.data) {
        value->kind = FL_LOD_TENSOR;
        FL_TRY(fl_tensor_resize(&value->tensor, v->dtype, &v->shape));
        memset(value->tensor.data, 0, fl_tensor_bytes(&value->tensor));
        fl_str_bytes(&a->values, v->name, strlen(v->name) + 1);
    }
    *out = &value->tensor;
    return FL_OK;
}

static fl_err take_value(fl_arrival *a, const fl_item *item)
{
    const fl_var *v = find_variable(a, item->name);
    fl_tensor *t = NULL;
    if (!v)
        return bad_value(item, "is for no variable of this server");
    if (item->kind != FL_LOD_TENSOR || item->dtype != v->dtype)
        return bad_value(item, "is of another type than the variable");
    FL_TRY(make_tensor(a, v, &t));
    const int64_t all = fl_tensor_numel(t), n = fl_shape_numel(&item->shape);
    if (item->first < 0 || n < 0 || item->first > all || n > all - item->first)
        return bad_value(item, "has more elements than the variable");
    const size_t one = fl_dtype_size(t->dtype);
    FL_TRY(fl_tensor_unique(t));
    fl_bytes_copy(item->data, 0, (char *)t->data + (size_t)item->first * one,
                  (size_t)n * one);
    return FL_OK;
}

static fl_err take_values(fl_arrival *a, const fl_parcel *p)
{
    for (int i = 0; p && i < p->n; i++)
        FL_TRY(take_value(a, &p->item[i]));
    return FL_OK;
}

/* Make the variables whose values a state holds. */
static fl_err make_named(fl_arrival *a, const fl_parcel *p)
{
    text names;
    fl_tensor *t;
    if (!fl_parcel_find(p, "values"))
        return FL_OK;
    FL_TRY(read_text(a, p, "values", PROGRAM_MOST, &names));
    for (size_t at = 0; at < names.n; at += strlen(names.at + at) + 1) {
        const fl_var *v = find_variable(a, names.at + at);
        if (!v)
            return fl_fail(FL_EINVAL,
                           "setup: the state has a value of \"%s\", but the "
                           "program has no such variable",
                           names.at + at);
        FL_TRY(make_tensor(a, v, &t));
    }
    return FL_OK;
}

/* --- parts --- */

static fl_err take_programs(fl_arrival *a, const fl_parcel *p, const fl_msg *m)
{
    if (!p)
        return fl_fail(FL_EPROTO, "setup: part 1 is empty");
    FL_TRY(read_program(a, p, "program", &a->program_text, &a->program));
    FL_TRY(read_program(a, p, "startup", &a->startup_text, &a->startup));
    FL_TRY(find_listen(a));
    FL_TRY(check_program(a, a->program, "server's"));
    FL_TRY(check_program(a, a->startup, "startup"));
    FL_TRY(set_placement(a, p, m));
    FL_TRY(run_startup(a));
    return make_named(a, p);
}

fl_err fl_arrival_take(fl_arrival *a, const fl_msg *m, bool *done)
{
    const fl_parcel *p = fl_parcel_of(m->blob);
    if (m->seq > a->have + 1 || m->seq < 1 || m->count < 1 ||
        m->count > PARTS_MOST || m->seq > m->count ||
        (a->have && (m->count != a->count || !fl_id_same(m->job, a->job))))
        return fl_fail(FL_EPROTO,
                       "setup: part %lld of %lld came after part %lld of %lld",
                       (long long)m->seq, (long long)m->count,
                       (long long)a->have, (long long)a->count);
    if (m->seq == a->have + 1) {
        FL_TRY(a->have ? take_values(a, p) : take_programs(a, p, m));
        a->have++;
        a->count = m->count;
        a->job = m->job;
    }
    *done = a->have == a->count;
    return FL_OK;
}

const fl_program *fl_arrival_program(const fl_arrival *a)
{
    return a->program;
}

const fl_op *fl_arrival_op(const fl_arrival *a)
{
    return a->op;
}

fl_scope *fl_arrival_scope(const fl_arrival *a)
{
    return a->scope;
}

fl_packet *fl_arrival_encode(const fl_arrival *a, const char *who)
{
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add_bytes(p, "servers", a->servers.at, a->servers.n);
    fl_parcel_add_bytes(p, "program", a->program_text.at, a->program_text.n);
    fl_parcel_add_bytes(p, "startup", a->startup_text.at, a->startup_text.n);
    if (a->values.n)
        fl_parcel_add_bytes(p, "values", a->values.at, a->values.n);
    const fl_msg m = {.kind = FL_MSG_SETUP,
                      .job = a->job,
                      .server = fl_placement_of(a->program->job)->server,
                      .seq = 1,
                      .count = 1,
                      .text = who,
                      .about = a->about,
                      .blob = fl_parcel_blob(p)};
    fl_packet *packet = fl_msg_encode(&m);
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_parcel_unref(p);
    return packet;
}

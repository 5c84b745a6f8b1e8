/* transpile_table.c - the table that is_distributed.
 *
 * It has no copy on any trainer. Rows live on the server that their number
 * modulo the servers gives, and are updated by sgd, whatever the program says.
 *
 *     trainer  split_ids -> prefetch -> merge_ids       for its lookups
 *              split_ids -> send                        for its gradient
 *     server   sum, sgd                                 update
 *              lookup_sparse_table                      answer a prefetch
 *              save                                     checkpoint */
#include "base/log.h"
#include "build/transpile.h"
#include "graph/copy.h"

/* --- finding it --- */

static bool is_flagged(const fl_op *op)
{
    const fl_attr *a = fl_desc_attr(&op->desc, "is_distributed");
    return !strcmp(op->desc.type, "lookup_table") && a && a->b;
}

/* Every lookup in the table is_distributed, and stands in the global block. */
static fl_err check_lookups(const fl_cut *c, const char *table)
{
    for (int64_t i = 0; i < c->main->blocks.n; i++) {
        const fl_ops *ops = &c->main->blocks.at[i]->ops;
        for (int64_t k = 0; k < ops->n; k++) {
            const fl_op *op = ops->at[k];
            if (strcmp(op->desc.type, "lookup_table") ||
                !fl_desc_reads(&op->desc, table) || (!i && is_flagged(op)))
                continue;
            return fl_fail(FL_EINVAL, "transpile: a lookup_table of \"%s\" %s",
                           table,
                           i ? "stands in a sub-block, but is_distributed"
                             : "lacks is_distributed, which others of it have");
        }
    }
    return FL_OK;
}

static fl_err find_name(const fl_cut *c, const char **name)
{
    const fl_block *b = fl_program_block(c->main, 0);
    *name = NULL;
    for (int64_t i = 0; i < b->ops.n; i++) {
        if (!is_flagged(b->ops.at[i]))
            continue;
        const char *w = fl_desc_in1(&b->ops.at[i]->desc, "W");
        if (*name && strcmp(*name, w))
            return fl_fail(FL_EINVAL,
                           "transpile: \"%s\" and \"%s\" are both "
                           "is_distributed, one table may be",
                           *name, w);
        *name = w;
    }
    return *name ? check_lookups(c, *name) : FL_OK;
}

static const fl_op *update_of(const fl_cut *c)
{
    for (int64_t i = 0; i < c->updates.n; i++) {
        const char *param = fl_desc_in1(&c->updates.at[i]->desc, "Param");
        if (param && !strcmp(param, c->table->param->name))
            return c->updates.at[i];
    }
    return NULL;
}

fl_err fl_table_find(fl_cut *c)
{
    const char *name;
    FL_TRY(find_name(c, &name));
    for (int64_t i = 0; name && i < c->shares.n; i++)
        if (!strcmp(c->shares.at[i]->param->name, name)) {
            c->table = c->shares.at[i];
            fl_remove(&c->shares, i);
            break;
        }
    if (c->table && !c->table->sparse)
        return fl_fail(FL_EINVAL,
                       "transpile: \"%s\" is_distributed, so its lookups must "
                       "be is_sparse too",
                       name);
    const fl_op *update = c->table ? update_of(c) : NULL;
    if (update && strcmp(update->desc.type, "sgd"))
        FL_WARN("the distributed table %s is updated by sgd, not by %s", name,
                update->desc.type);
    return FL_OK;
}

/* --- the trainer --- */

static const char **numbered(fl_cut *c, const char *start)
{
    const char **at =
        fl_arena_alloc(c->arena, (size_t)c->n_servers * sizeof *at);
    for (int i = 0; i < c->n_servers; i++)
        at[i] = fl_arena_printf(c->arena, "%s%d", start, i);
    return at;
}

static const char **requests(fl_cut *c)
{
    return numbered(c, "prefetch_compress_in_tmp_");
}

static const char **answers(fl_cut *c)
{
    return numbered(c, "prefetch_compress_out_tmp_");
}

static fl_err declare_all(fl_block *b, int n, const char **names,
                          const fl_var *like)
{
    fl_var v = *like, *out;
    v.param = NULL;
    v.is_data = v.persistable = false;
    v.lod_level = 0;
    for (int i = 0; i < n; i++) {
        v.name = names[i];
        FL_TRY(fl_block_add_var(b, &v, &out));
    }
    return FL_OK;
}

/* The lookups in the table, in order. */
typedef struct lookups {
    int n;
    const char **ids, **outs;
    int64_t *padding; /* row that reads as zero; -1: none */
    bool padded;      /* one at least */
} lookups;

/* The three ops that stand for all lookups, at the place of the first. */
static fl_err add_prefetch(fl_cut *c, fl_block *b, int64_t at, const lookups *l)
{
    fl_desc *split = fl_cut_desc(c, "split_ids", FL_ROLE_FORWARD);
    fl_desc *fetch = fl_cut_desc(c, "prefetch", FL_ROLE_FORWARD);
    fl_desc *merge = fl_cut_desc(c, "merge_ids", FL_ROLE_FORWARD);
    FL_TRY(
        declare_all(b, c->n_servers, answers(c), fl_block_find(b, l->outs[0])));
    fl_desc_set_in(split, "Ids", l->n, l->ids);
    fl_desc_set_out(split, "Out", c->n_servers, requests(c));
    fl_desc_set_in(fetch, "X", c->n_servers, requests(c));
    fl_desc_set_out(fetch, "Out", c->n_servers, answers(c));
    fl_set_strs(fetch, "epmap", c->n_servers, c->servers);
    fl_set_str(fetch, "table_name", c->table->param->name);
    fl_set_int(fetch, "trainer_id", c->opts.trainer_id);
    fl_desc_set_in(merge, "Ids", l->n, l->ids);
    fl_desc_set_in(merge, "Rows", c->n_servers, requests(c));
    fl_desc_set_in(merge, "X", c->n_servers, answers(c));
    fl_desc_set_out(merge, "Out", l->n, l->outs);
    if (l->padded)
        fl_set_ints(merge, "padding_idx", l->n, l->padding);
    FL_TRY(fl_block_insert_op(b, at, split, NULL));
    FL_TRY(fl_block_insert_op(b, at + 1, fetch, NULL));
    return fl_block_insert_op(b, at + 2, merge, NULL);
}

/* Takes the op out of the block. */
static void take_lookup(fl_block *b, int64_t at, lookups *l)
{
    const fl_desc *d = &b->ops.at[at]->desc;
    const fl_attr *padding = fl_desc_attr(d, "padding_idx");
    l->padding[l->n] = padding ? padding->i : -1;
    l->padded |= l->padding[l->n] != -1;
    l->ids[l->n] = fl_desc_in1(d, "Ids");
    l->outs[l->n++] = fl_desc_out1(d, "Out");
    fl_block_remove_op(b, at);
}

static fl_err replace_lookups(fl_cut *c, fl_block *b)
{
    const size_t size = (size_t)b->ops.n * sizeof(char *);
    lookups l = {
        .ids = fl_arena_alloc(c->arena, size),
        .outs = fl_arena_alloc(c->arena, size),
        .padding =
            fl_arena_alloc(c->arena, (size_t)b->ops.n * sizeof *l.padding),
    };
    int64_t first = -1;
    for (int64_t i = 0; i < b->ops.n;) {
        if (!is_flagged(b->ops.at[i])) {
            i++;
            continue;
        }
        first = first < 0 ? i : first;
        take_lookup(b, i, &l);
    }
    for (int i = 0; i < l.n; i++)
        if (fl_cut_last_writer(b, l.ids[i]) >= first)
            return fl_fail(FL_EINVAL,
                           "transpile: the ids \"%s\" are made after the first "
                           "lookup in \"%s\", whose lookups go as one",
                           l.ids[i], c->table->param->name);
    return add_prefetch(c, b, first, &l);
}

/* The part of the table's gradient that goes from one trainer to one server.
 */
static const char *part_name(fl_cut *c, int trainer, int server)
{
    const char *grad = c->table->grad->name;
    return c->opts.async
               ? fl_arena_printf(c->arena, "%s.pserver_%d", grad, server)
               : fl_arena_printf(c->arena, "%s.trainer_%d.pserver_%d", grad,
                                 trainer, server);
}

static fl_err send_grad(fl_cut *c, fl_block *b)
{
    fl_share *t = c->table;
    const char **parts =
        fl_arena_alloc(c->arena, (size_t)c->n_servers * sizeof *parts);
    const int64_t at = fl_cut_last_writer(b, t->grad->name) + 1;
    fl_desc *split = fl_cut_desc(c, "split_ids", FL_ROLE_DIST);
    fl_desc *send = fl_cut_desc(c, "send", FL_ROLE_RPC);
    for (int i = 0; i < c->n_servers; i++)
        parts[i] = part_name(c, c->opts.trainer_id, i);
    FL_TRY(declare_all(b, c->n_servers, parts, t->grad));
    FL_TRY(fl_cut_token(c, b, &t->token));
    fl_desc_set_in1(split, "Ids", t->grad->name);
    fl_desc_set_out(split, "Out", c->n_servers, parts);
    fl_desc_set_in(send, "X", c->n_servers, parts);
    fl_desc_set_out1(send, "Out", t->token);
    fl_set_strs(send, "epmap", c->n_servers, c->servers);
    fl_set_int(send, "trainer_id", c->opts.trainer_id);
    fl_set_strs(send, "op_role_var", 2,
                (const char *[]){t->param->name, t->grad->name});
    FL_TRY(fl_block_insert_op(b, at, split, NULL));
    return fl_block_insert_op(b, at + 1, send, NULL);
}

fl_err fl_table_edit_trainer(fl_cut *c, fl_block *b)
{
    FL_TRY(replace_lookups(c, b));
    return send_grad(c, b);
}

fl_err fl_table_edit_startup(fl_cut *c, fl_block *b)
{
    const fl_var *w = c->table->param;
    fl_desc *d = fl_cut_desc(c, "fake_init", FL_ROLE_FORWARD);
    for (int64_t i = b->ops.n; i-- > 0;)
        if (fl_desc_writes(&b->ops.at[i]->desc, w->name))
            fl_block_remove_op(b, i);
    fl_desc_set_out1(d, "Out", w->name);
    fl_set_ints(d, "shape", w->shape.rank, w->shape.dim);
    return fl_block_append_op(b, d, NULL);
}

/* --- the server --- */

/* Rows come as they are asked for, and are called by their numbers in the
 * whole; the shape tells how many a server may expect. */
static fl_shape share_shape(const fl_cut *c)
{
    fl_shape shape = c->table->param->shape;
    shape.dim[0] = (shape.dim[0] + c->n_servers - 1) / c->n_servers;
    return shape;
}

static fl_err declare_table(fl_server_cut *s)
{
    fl_var like = *s->c->table->param, *v;
    like.param = NULL;
    like.kind = FL_SELECTED_ROWS;
    like.shape = share_shape(s->c);
    fl_push(&s->held, (fl_held){like.name, like.name, false, 0, like.shape});
    return fl_block_add_var(s->b, &like, &v);
}

/* What arrives from the trainers, added up where they meet. */
static fl_err add_gradient(fl_server_cut *s, fl_block **block,
                           const char **merged)
{
    fl_cut *c = s->c;
    const int n = c->opts.async ? 1 : c->opts.trainers;
    const char **parts = fl_arena_alloc(c->arena, (size_t)n * sizeof *parts);
    fl_var like = *c->table->grad;
    like.shape = share_shape(c);
    for (int i = 0; i < n; i++) {
        parts[i] = part_name(c, i, s->at);
        fl_push(&s->inputs, parts[i]);
    }
    FL_TRY(declare_all(s->b, n, parts, &like));
    *merged = c->opts.async ? parts[0] : like.name;
    *block = fl_server_block(s, *merged);
    if (c->opts.async)
        return FL_OK;
    FL_TRY(declare_all(s->b, 1, merged, &like));
    fl_desc *d = fl_desc_new(c->arena, "sum");
    fl_desc_set_in(d, "X", n, parts);
    fl_desc_set_out1(d, "Out", *merged);
    return fl_block_append_op(*block, d, NULL);
}

static fl_err add_update(fl_server_cut *s, fl_block **block)
{
    const fl_share *t = s->c->table;
    const fl_op *update = update_of(s->c);
    const char *rate =
        update ? fl_desc_in1(&update->desc, "LearningRate") : NULL;
    const char *merged;
    fl_var *v;
    if (!rate)
        return fl_fail(FL_EINVAL,
                       "transpile: no optimiser with a learning rate updates "
                       "the distributed table \"%s\"",
                       t->param->name);
    FL_TRY(add_gradient(s, block, &merged));
    FL_TRY(fl_block_get(fl_program_block(s->c->main, 0), rate, &v));
    FL_TRY(fl_server_declare(s, v));
    fl_desc *d = fl_desc_new(s->c->arena, "sgd");
    fl_desc_set_in1(d, "Param", t->param->name);
    fl_desc_set_in1(d, "LearningRate", rate);
    fl_desc_set_in1(d, "Grad", merged);
    fl_desc_set_out1(d, "ParamOut", t->param->name);
    fl_op op = {.desc = *d};
    FL_TRY(fl_registry_get(s->p->registry, "sgd", &op.def));
    fl_copy_op(*block, &op); /* its shape rule knows tensors, not tables */
    return FL_OK;
}

static fl_err add_lookup(fl_server_cut *s, const fl_block *update)
{
    fl_cut *c = s->c;
    const char *ids = requests(c)[s->at], *out = answers(c)[s->at];
    const fl_block *trainer = fl_program_block(c->trainer, 0);
    fl_block *b = fl_program_add_block(s->p, update->idx);
    fl_desc *d = fl_desc_new(c->arena, "lookup_sparse_table");
    FL_TRY(declare_all(s->b, 1, &ids, fl_block_var(trainer, ids)));
    FL_TRY(declare_all(s->b, 1, &out, fl_block_var(trainer, out)));
    fl_desc_set_in1(d, "W", c->table->param->name);
    fl_desc_set_in1(d, "Ids", ids);
    fl_desc_set_out1(d, "Out", out);
    fl_push(&s->fetches, fl_arena_printf(c->arena, "%s:%d", ids, b->idx));
    return fl_block_append_op(b, d, NULL);
}

static fl_err add_save(fl_server_cut *s, const fl_block *update)
{
    fl_desc *d = fl_desc_new(s->c->arena, "save");
    fl_var *v;
    FL_TRY(fl_block_add_var(s->b,
                            &(fl_var){.name = "kLookupTablePath",
                                      .kind = FL_RAW,
                                      .persistable = true},
                            &v));
    fl_block *b = fl_program_add_block(s->p, update->idx);
    fl_desc_set_in1(d, "X", s->c->table->param->name);
    fl_set_str(d, "file_path", "none"); /* the request says where */
    s->checkpoint = b->idx;
    return fl_block_append_op(b, d, NULL);
}

fl_err fl_table_serve(fl_server_cut *s)
{
    fl_block *update = NULL;
    FL_TRY(declare_table(s));
    FL_TRY(add_update(s, &update));
    FL_TRY(add_lookup(s, update));
    return add_save(s, update);
}

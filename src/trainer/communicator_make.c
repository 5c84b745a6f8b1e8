/* communicator_make.c - what a program's send and recv operators say.
 *
 *     send   X and its pieces (send_varnames, sections, epmap); or many X,
 *            each a piece
 *     recv   Out and its pieces (recv_varnames, epmap), behind a send; one
 *            behind nothing belongs to a startup program */
#include "trainer/communicator_in.h"

#include "graph/program.h"

typedef struct maker {
    fl_communicator *c;
    const fl_placement *place;
    FL_VEC(fl_outflow) out;
    FL_VEC(fl_inflow) in;
} maker;

static fl_err find_server(const maker *m, const char *endpoint, int *server)
{
    for (int i = 0; i < m->place->n_servers; i++)
        if (!strcmp(m->place->servers[i], endpoint)) {
            *server = i;
            return FL_OK;
        }
    return fl_fail(FL_EINVAL,
                   "communicator: \"%s\" is not among the job's %d servers",
                   endpoint, m->place->n_servers);
}

static int count(const fl_attr *a)
{
    return a ? a->n : 0;
}

/* n pieces with these names, on the servers of epmap from `first` on. */
static fl_err make_pieces(maker *m, const fl_op *op, int first, int n,
                          const char *const *names, const int64_t *rows,
                          fl_stretch **out)
{
    const fl_attr *to = fl_desc_attr(&op->desc, "epmap");
    fl_arena *a = m->c->arena;
    if (count(to) < first + n)
        return fl_fail(FL_EINVAL,
                       "communicator: a %s has %d servers for %d pieces",
                       op->desc.type, count(to), first + n);
    *out = fl_arena_alloc(a, (size_t)(n + 1) * sizeof **out);
    for (int i = 0; i < n; i++) {
        fl_stretch *s = &(*out)[i];
        s->name = fl_arena_strdup(a, names[i]);
        s->rows = rows ? rows[i] : -1;
        FL_TRY(find_server(m, to->strings[first + i], &s->server));
    }
    return FL_OK;
}

/* --- gradients --- */

static fl_err add_out(maker *m, const fl_op *op, const char *name, int first,
                      int n, const char *const *names, const int64_t *rows)
{
    fl_outflow f = {.name = fl_arena_strdup(m->c->arena, name), .n = n};
    if (n < 1)
        return fl_fail(FL_EINVAL, "communicator: \"%s\" has no pieces", name);
    FL_TRY(make_pieces(m, op, first, n, names, rows, &f.to));
    f.piece = fl_arena_alloc(m->c->arena, (size_t)n * sizeof *f.piece);
    fl_push(&m->out, f);
    return FL_OK;
}

static fl_err add_send(maker *m, const fl_op *op)
{
    const fl_args *x = fl_desc_in(&op->desc, "X");
    const fl_attr *names = fl_desc_attr(&op->desc, "send_varnames");
    const fl_attr *rows = fl_desc_attr(&op->desc, "sections");
    if (count(names) && (!x || x->n != 1 || count(rows) != names->n))
        return fl_fail(FL_EINVAL,
                       "communicator: a send has %d sections and %d "
                       "send_varnames for %d X",
                       count(rows), names->n, x ? x->n : 0);
    if (count(names))
        return add_out(m, op, x->name[0], 0, names->n, names->strings,
                       rows->longs);
    for (int i = 0; x && i < x->n; i++)
        FL_TRY(add_out(m, op, x->name[i], i, 1, &x->name[i], NULL));
    return FL_OK;
}

/* --- parameters --- */

static fl_err add_in(maker *m, const fl_op *op)
{
    const fl_args *x = fl_desc_in(&op->desc, "X");
    const fl_args *out = fl_desc_out(&op->desc, "Out");
    const fl_attr *names = fl_desc_attr(&op->desc, "recv_varnames");
    if (!x || !x->n || !out || !out->n)
        return FL_OK;
    if (out->n != 1)
        return fl_fail(FL_EINVAL,
                       "communicator: a recv leaves the pieces \"%s\".. to be "
                       "joined by another op; transpile with "
                       "runtime_split_send_recv",
                       out->name[0]);
    const int n = count(names) ? names->n : 1;
    fl_inflow f = {.name = fl_arena_strdup(m->c->arena, out->name[0]), .n = n};
    const size_t size = (size_t)n * sizeof *f.here;
    FL_TRY(make_pieces(m, op, 0, n, count(names) ? names->strings : out->name,
                       NULL, &f.from));
    f.here = fl_arena_alloc(m->c->arena, size);
    f.coming = fl_arena_alloc(m->c->arena, size);
    fl_push(&m->in, f);
    return FL_OK;
}

/* --- the whole --- */

static fl_err read_ops(maker *m, const fl_program *p)
{
    const fl_block *b = p->blocks.at[0];
    for (int64_t i = 0; i < b->ops.n; i++) {
        const fl_op *op = b->ops.at[i];
        if (!strcmp(op->desc.type, "send"))
            FL_TRY(add_send(m, op));
        else if (!strcmp(op->desc.type, "recv"))
            FL_TRY(add_in(m, op));
    }
    if (m->out.n)
        return FL_OK;
    return fl_fail(FL_EINVAL,
                   "communicator: the program sends no gradient; start it "
                   "with what get_trainer_program gave, or "
                   "fleet.main_program");
}

static fl_err check_place(const fl_placement *place)
{
    if (!place || place->server >= 0)
        return fl_fail(FL_EINVAL,
                       "communicator: the program is no trainer's part of a "
                       "job; transpile gives it with get_trainer_program");
    if (!place->async)
        return fl_fail(FL_EINVAL,
                       "communicator: trainers of this job meet after every "
                       "step (sync_mode); there is nothing to gather");
    return FL_OK;
}

fl_err fl_comm_make(fl_communicator *c, const fl_program *p)
{
    maker m = {.c = c, .place = fl_placement_of(p->job)};
    FL_TRY(check_place(fl_placement_of(p->job)));
    c->half = fl_placement_of(p->job)->half_async;
    const fl_err err = read_ops(&m, p);
    c->out = m.out.at;
    c->in = m.in.at;
    c->n_out = (int)m.out.n;
    c->n_in = (int)m.in.n;
    for (int i = 0; i < c->n_out; i++) {
        fl_outflow *f = &c->out[i];
        pthread_mutex_init(&f->lock, NULL);
        pthread_cond_init(&f->room, &c->monotonic);
        fl_map_put(&c->grads, f->name, f);
    }
    for (int i = 0; i < c->n_in; i++) {
        pthread_mutex_init(&c->in[i].lock, NULL);
        fl_map_put(&c->params, c->in[i].name, &c->in[i]);
    }
    return err;
}

static void end_outflow(fl_outflow *f)
{
    fl_heap_fini(&f->filling);
    fl_heap_fini(&f->away);
    fl_tensor_fini(&f->sum.index);
    fl_tensor_fini(&f->sum.value);
    for (int i = 0; i < f->n; i++)
        if (f->piece[i].kind == FL_SELECTED_ROWS) /* others are borrowed */
            fl_value_fini(&f->piece[i]);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->room);
}

static void end_inflow(fl_inflow *f)
{
    for (int i = 0; i < f->n; i++) {
        fl_tensor_fini(&f->here[i]);
        fl_tensor_fini(&f->coming[i]);
    }
    pthread_mutex_destroy(&f->lock);
}

void fl_comm_unmake(fl_communicator *c)
{
    for (int i = 0; i < c->n_out; i++)
        end_outflow(&c->out[i]);
    for (int i = 0; i < c->n_in; i++)
        end_inflow(&c->in[i]);
    fl_mem_free(c->out);
    fl_mem_free(c->in);
    fl_map_fini(&c->grads);
    fl_map_fini(&c->params);
}

/* run.c - run a plan.
 *
 * Feeds lend their memory, steps run in order, fetches are copied out. What
 * comes from outside is compared with the last run's: if no shape and no LoD
 * has moved, nothing is inferred and nothing is sized. */
#include "exec/plan_parts.h"

#include "exec/away.h"

#include <string.h>

static fl_err check_feed(const fl_port *p, const fl_tensor *t)
{
    char got[FL_SHAPE_TEXT], want[FL_SHAPE_TEXT];
    if (!t->data)
        return fl_fail(FL_EINVAL, "feed \"%s\": the tensor has no memory",
                       p->name);
    if (fl_shape_numel(&t->shape) < 0)
        return fl_fail(FL_ESHAPE,
                       "feed \"%s\" is %s%s: a dimension is negative", p->name,
                       fl_dtype_word(t->dtype), fl_shape_text(&t->shape, got));
    if (t->dtype != p->var->dtype || !fl_shape_alike(&t->shape, &p->var->shape))
        return fl_fail(FL_ESHAPE, "feed \"%s\" is %s%s, expected %s%s", p->name,
                       fl_dtype_word(t->dtype), fl_shape_text(&t->shape, got),
                       fl_dtype_word(p->var->dtype),
                       fl_shape_text(&p->var->shape, want));
    fl_err err = FL_OK;
    if (t->lod.levels)
        err = fl_lod_check(&t->lod, t->shape.rank ? t->shape.dim[0] : 1);
    return err ? fl_fail_at(err, "feed \"%s\"", p->name) : FL_OK;
}

/* The values of the last run still hold the old LoD; they let go of it in this
 * run, and its memory serves the next. */
static fl_err take_lod(fl_port *p, const fl_lod *lod)
{
    fl_lod *mine = &p->value->tensor.lod, old = *mine;
    if (old.buf && fl_buf_shared(old.buf)) {
        *mine = p->spare;
        p->spare = old;
    }
    return fl_lod_copy(mine, lod);
}

/* The fed tensor lends its memory for the run; its LoD is copied if new.
 * *moved: the shape or the LoD differs from the last run's. */
static fl_err take_feed(fl_port *p, const fl_tensor *t, bool *moved)
{
    fl_tensor *mine = &p->value->tensor;
    FL_TRY(check_feed(p, t));
    if (mine->buf) { /* a persistable variable may be fed: it owned memory */
        fl_buf_unref(mine->buf);
        mine->buf = NULL;
    }
    if (p->value->kind != FL_LOD_TENSOR ||
        !fl_shape_equal(&mine->shape, &t->shape))
        *moved = true;
    p->value->kind = FL_LOD_TENSOR;
    mine->dtype = t->dtype;
    mine->shape = t->shape;
    mine->data = t->data;
    if (!fl_lod_equal(&mine->lod, &t->lod)) {
        *moved = true;
        FL_TRY(take_lod(p, &t->lod));
    }
    return FL_OK;
}

/* Memory of a feed is the caller's: let go of it when the run is over. */
static fl_err drop_feeds(fl_plan *plan)
{
    for (int i = 0; i < plan->n_feeds; i++) {
        fl_tensor *t = &plan->feeds[i].value->tensor;
        if (t->buf || !t->data)
            continue;
        if (plan->feeds[i].var->persistable)
            FL_TRY(fl_tensor_unique(t));
        else
            t->data = NULL;
    }
    return FL_OK;
}

/* Shapes of what the scope holds, against the last run's. Persistable
 * variables with a LoD are rare: it is taken to differ each time. */
static bool outside_moved(fl_plan *plan)
{
    bool moved = false;
    for (int64_t i = 0; i < plan->outsides.n; i++) {
        fl_outside *o = &plan->outsides.at[i];
        const fl_value *v = o->value;
        const fl_tensor *t =
            v->kind == FL_SELECTED_ROWS ? &v->rows.value : &v->tensor;
        if (o->kind == v->kind && o->dtype == t->dtype &&
            fl_shape_equal(&o->shape, &t->shape) && !o->lod_levels &&
            !t->lod.levels)
            continue;
        o->kind = v->kind;
        o->dtype = t->dtype;
        o->shape = t->shape;
        o->lod_levels = t->lod.levels;
        moved = true;
    }
    return moved;
}

static fl_err run_step(fl_step *s, bool settled)
{
    if (!settled || s->moving)
        FL_TRY(fl_frame_prepare(&s->frame));
    return fl_frame_run(&s->frame);
}

static fl_err run_watched(fl_watch *w, fl_step *s, bool settled)
{
    FL_TRY(fl_watch_ask(w));
    if (!w->profiling)
        return run_step(s, settled);
    const int64_t start = fl_clock_now(w->clock);
    FL_TRY(run_step(s, settled));
    fl_watch_count(w, s->frame.desc->type, start);
    return FL_OK;
}

/* A variable that a run should find in the scope is the usual thing to miss:
 * that says what to do. */
static fl_err step_failed(const fl_unit *u, const fl_step *s, fl_err err)
{
    const char *empty = err == FL_ENOENT ? fl_frame_empty(&s->frame) : NULL;
    const fl_var *v = empty ? fl_block_find(u->block, empty) : NULL;
    const fl_value *value =
        v && v->persistable ? fl_map_get(&u->plan->known, empty) : NULL;
    if (value && fl_value_is_away(value))
        err = fl_away_fail(empty);
    else if (value)
        err = fl_fail(FL_ENOENT,
                      "\"%s\" holds nothing yet: run the startup program first "
                      "(in Python: exe.run(fluid.default_startup_program())), "
                      "or load it",
                      empty);
    return fl_unit_at(err, u, s->frame.desc, s->index);
}

fl_err fl_unit_run(fl_unit *u, bool settled)
{
    fl_watch *w = u->plan->env.watch;
    for (int64_t i = 0; i < u->steps.n; i++) {
        fl_step *s = &u->steps.at[i];
        const fl_err err =
            w ? run_watched(w, s, settled) : run_step(s, settled);
        if (err)
            return step_failed(u, s, err);
    }
    return FL_OK;
}

static fl_err give_rows(const fl_rows *from, fl_rows *to)
{
    fl_shape shape = from->value.shape;
    shape.dim[0] = from->height;
    FL_TRY(fl_rows_resize(to, from->value.dtype, &shape, from->n));
    const size_t bytes = fl_tensor_bytes(&to->value);
    if (!bytes)
        return FL_OK;
    memcpy(to->index.data, from->index.data, (size_t)from->n * sizeof(int64_t));
    memcpy(to->value.data, from->value.data, bytes);
    return FL_OK;
}

static fl_err give_fetch(const fl_port *p, fl_fetch *f, bool lenient)
{
    const fl_value *v = p->value;
    f->kind = v->kind;
    if (v->kind == FL_SELECTED_ROWS)
        return give_rows(&v->rows, &f->rows);
    const bool written = v->kind == FL_LOD_TENSOR && v->tensor.data;
    if (written)
        return fl_tensor_copy(&f->tensor, &v->tensor);
    if (p->var->persistable && fl_value_is_away(v))
        return fl_away_fail(p->name);
    if (!lenient)
        return fl_fail(FL_ENOENT, "fetch \"%s\": nothing has written it",
                       p->name);
    fl_fetch_fini(f);
    return FL_OK;
}

static fl_err run_all(fl_plan *plan, const fl_feed *feeds, fl_fetch *fetches)
{
    bool moved = !plan->settled;
    plan->settled = false;
    for (int i = 0; i < plan->n_feeds; i++)
        FL_TRY(take_feed(&plan->feeds[i], &feeds[i].tensor, &moved));
    if (outside_moved(plan))
        moved = true;
    FL_TRY(fl_unit_run(&plan->units[0], !moved));
    for (int i = 0; i < plan->n_fetches; i++)
        FL_TRY(give_fetch(&plan->fetches[i], &fetches[i], plan->env.lenient));
    plan->settled = true;
    return FL_OK;
}

fl_err fl_plan_run(fl_plan *plan, const fl_feed *feeds, fl_fetch *fetches)
{
    fl_err err = run_all(plan, feeds, fetches);
    fl_err dropped = drop_feeds(plan);
    return err ? err : dropped;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* positions.c - reads and writes the position of a rank, and repeats steps
 * whose session was lost. */
#include "train/positions.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>

/* Whether a run of the program ends a step of a job. */
static bool sends_gradients(const fl_program *p)
{
    const fl_ops *ops = &p->blocks.at[0]->ops;
    for (int64_t i = 0; i < ops->n; i++)
        if (!strcmp(ops->at[i]->desc.type, "send"))
            return true;
    return false;
}

/* Read what the coordinator has kept for this rank. */
static fl_err read_kept(fl_positions *p, const char *kept)
{
    int64_t pass;
    uint32_t digest;
    int n = 0;
    if (sscanf(kept, "pass %" SCNd64 " of %" SCNx32 ": %n", &pass, &digest,
               &n) != 2 ||
        !n)
        return fl_fail(FL_EPROTO, "\"%s\" is not a position in a pass", kept);
    p->passed = pass > p->pass;
    if (pass != p->pass)
        return FL_OK;
    if (digest != p->digest)
        return fl_fail(
            FL_EINVAL,
            "pass %lld of this trainer began with other data (digest "
            "%08x, now %08x): files, their order, batch size, pipe "
            "command, shuffles and FLAGS_communicator_max_merge_var_num must "
            "be those of the process before, or the job must be started anew",
            (long long)pass, digest, p->digest);
    return fl_position_read(&p->position, kept + n);
}

static void tell_position(const fl_positions *p, const fl_dataset *d)
{
    fl_str text = {0};
    fl_position_text(&p->position, &text);
    if (p->passed)
        FL_WARN("pass %lld was trained completely before this process was "
                "started: it is skipped",
                (long long)p->pass);
    else if (p->position.first || p->position.uses.n)
        FL_WARN("pass %lld goes on where this trainer was stopped: %s of %lld "
                "%s",
                (long long)p->pass, text.at, (long long)fl_dataset_parts(d),
                d->loaded ? "batches" : "files");
    fl_str_fini(&text);
}

/* Whether steps have positions if a communicator sends their gradients. The
 * size of its groups is part of the digest: a process that continues starts
 * with a new group, and a group that was lost must be made again with the same
 * batches. */
static void choose_groups(fl_positions *p, fl_communicator *c, int threads)
{
    const int64_t group = fl_communicator_group(c);
    if (threads > 1 || !group) {
        p->trainer = NULL;
        return;
    }
    p->communicator = c;
    p->group = group;
    p->digest ^= (uint32_t)group * UINT32_C(0x9e3779b1);
}

fl_err fl_positions_init(fl_positions *p, const fl_exec_env *env,
                         const fl_train_opts *opts, int threads,
                         const fl_watch *by)
{
    const fl_placement *at = fl_placement_of(opts->program->job);
    fl_str kept = {0};
    *p = (fl_positions){0};
    if (!at || opts->infer || !env->service || !sends_gradients(opts->program))
        return FL_OK;
    p->digest = fl_dataset_digest(opts->dataset);
    FL_TRY(fl_service_trainer(env->service, at, &p->trainer));
    FL_TRY(fl_trainer_begin_pass(p->trainer, by, &p->pass, &kept));
    fl_communicator *c = fl_service_communicator(env->service, at);
    if (c)
        choose_groups(p, c, threads);
    const fl_err err = kept.n && p->trainer ? read_kept(p, kept.at) : FL_OK;
    fl_str_fini(&kept);
    if (err || !p->trainer)
        return err;
    tell_position(p, opts->dataset);
    if (p->communicator && !p->passed)
        return fl_communicator_begin_groups(p->communicator, by);
    return FL_OK;
}

void fl_positions_fini(fl_positions *p)
{
    if (p->communicator && !p->passed)
        fl_communicator_end_groups(p->communicator);
    fl_position_fini(&p->position);
}

/* Run the step once. *lost: its session was lost, perhaps before the step
 * began, and the step does not count. */
static fl_err try_step(fl_positions *p, const fl_watch *by, const char *text,
                       fl_err (*step)(void *), void *self, bool *lost)
{
    int64_t before, after, dropped, dropped_now;
    fl_trainer_count_steps(p->trainer, &before, &dropped);
    FL_TRY(fl_trainer_position(p->trainer, by, text));
    FL_TRY(step(self));
    FL_TRY(fl_trainer_flush(p->trainer, by));
    fl_trainer_count_steps(p->trainer, &after, &dropped_now);
    *lost = after == before && dropped_now != dropped;
    return FL_OK;
}

static void write_position(const fl_positions *p, fl_str *to)
{
    fl_str_printf(to, "pass %" PRId64 " of %08" PRIx32 ": ", p->pass,
                  p->digest);
    fl_position_text(&p->position, to);
}

/* End the group of the batches since the last group. */
static fl_err end_group(fl_positions *p, const fl_watch *by)
{
    fl_str text = {0};
    write_position(p, &text);
    const fl_err err = fl_communicator_end_group(p->communicator, text.at, by);
    fl_str_fini(&text);
    p->batches = 0;
    return err;
}

static fl_err step_in_group(fl_positions *p, const fl_watch *by,
                            fl_err (*step)(void *), void *self)
{
    FL_TRY(step(self));
    return ++p->batches == p->group ? end_group(p, by) : FL_OK;
}

fl_err fl_positions_end(fl_positions *p, const fl_watch *by)
{
    return p->communicator && p->batches ? end_group(p, by) : FL_OK;
}

fl_err fl_positions_step(fl_positions *p, const fl_watch *by,
                         const fl_uses *uses, fl_err (*step)(void *),
                         void *self)
{
    fl_str text = {0};
    bool lost = true;
    fl_err err = FL_OK;
    if (!p->trainer)
        return step(self);
    for (int64_t i = 0; i < uses->n; i++)
        fl_position_add(&p->position, uses->at[i]);
    if (p->communicator)
        return step_in_group(p, by, step, self);
    write_position(p, &text);
    for (bool again = false; lost && !err; again = true) {
        if (again)
            FL_WARN("the batch is computed again, since its session was lost");
        err = try_step(p, by, text.at, step, self, &lost);
    }
    fl_str_fini(&text);
    return err;
}

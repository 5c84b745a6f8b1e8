/* SPDX-License-Identifier: Apache-2.0 */
#include "pserver/pulls.h"

#include "base/test.h"
#include "wire/codec.h"

#include <stdio.h>

typedef struct waiting_task {
    int owner;
    void (*fn)(void *arg);
    void *arg;
} waiting_task;

/* Two variables of two owners, whose tasks run when the test says so. */
typedef struct pull_scene {
    fl_pulls *pulls;
    fl_value w, b; /* 4 x 1 of owner 0; 2 x 1 of owner 1 */
    FL_VEC(waiting_task) tasks;
    int answers;
    fl_msg_kind kind; /* of the last answer */
    char text[256];
    fl_parcel *values;
} pull_scene;

static void submit_later(void *store, int owner, void (*fn)(void *arg),
                         void *arg)
{
    pull_scene *s = store;
    fl_push(&s->tasks, ((waiting_task){owner, fn, arg}));
}

static void note_answer(void *self, fl_peer to, const fl_msg *m)
{
    pull_scene *s = self;
    s->answers++;
    s->kind = m->kind;
    snprintf(s->text, sizeof s->text, "%s", m->text ? m->text : "");
    fl_parcel_unref(s->values);
    s->values =
        fl_parcel_of(m->blob) ? fl_parcel_ref(fl_parcel_of(m->blob)) : NULL;
}

static void set_column(fl_value *v, int64_t n, float first)
{
    const fl_shape shape = {2, {n, 1}};
    v->kind = FL_LOD_TENSOR;
    CHECK_OK(fl_tensor_resize(&v->tensor, FL_F32, &shape));
    for (int64_t i = 0; i < n; i++)
        ((float *)v->tensor.data)[i] = first + (float)i;
}

static void begin_pulls(pull_scene *s)
{
    *s = (pull_scene){0};
    set_column(&s->w, 4, 10);
    set_column(&s->b, 2, 20);
    s->pulls = fl_pulls_new(&(fl_pulls_opts){.owners = 2,
                                             .submit = submit_later,
                                             .store = s,
                                             .answer = note_answer,
                                             .self = s});
    fl_pulls_add(s->pulls, "w", &s->w);
    fl_pulls_add(s->pulls, "b", &s->b);
    fl_pulls_assign(s->pulls, "b", 1);
}

static void end_pulls(pull_scene *s)
{
    fl_pulls_free(s->pulls);
    fl_parcel_unref(s->values);
    fl_vec_fini(&s->tasks);
    fl_value_fini(&s->w);
    fl_value_fini(&s->b);
}

/* Own: takes p. */
static void pull_parcel(pull_scene *s, fl_parcel *p, bool idle)
{
    const fl_blob names = fl_parcel_blob(p);
    fl_pulls_read(s->pulls, names, (fl_peer){FL_PEER_CALL, 0, 1},
                  &(fl_msg){.kind = FL_MSG_VALUES}, idle);
    fl_keeper_parcels.drop(NULL, names);
    fl_parcel_unref(p);
}

static void pull_whole(pull_scene *s, const char *name)
{
    fl_parcel *p = fl_parcel_new();
    fl_parcel_want(p, name, -1, NULL);
    pull_parcel(s, p, true);
}

static void run_task(pull_scene *s, int64_t i)
{
    const waiting_task t = s->tasks.at[i];
    fl_remove(&s->tasks, i);
    t.fn(t.arg);
}

static float pulled_value(const pull_scene *s, int item, int64_t element)
{
    float x;
    CHECK_INT(s->kind, FL_MSG_VALUES);
    fl_bytes_copy(s->values->item[item].data, (size_t)element * sizeof x, &x,
                  sizeof x);
    return x;
}

static void the_last_owner_answers(void)
{
    pull_scene s;
    begin_pulls(&s);
    fl_parcel *p = fl_parcel_new();
    fl_parcel_want(p, "b", -1, NULL);
    fl_parcel_want(p, "w", -1, NULL);
    pull_parcel(&s, p, false);
    CHECK_INT(s.tasks.n, 2);
    CHECK_INT(s.tasks.at[1].owner, 1);
    run_task(&s, 1);
    CHECK_INT(s.answers, 0);
    run_task(&s, 0);
    CHECK_INT(s.answers, 1);
    CHECK_NEAR(pulled_value(&s, 0, 1), 21, 0);
    CHECK_NEAR(pulled_value(&s, 1, 3), 13, 0);
    end_pulls(&s);
}

static void the_caller_reads_a_few_rows(void)
{
    const int64_t rows[] = {3, 1};
    pull_scene s;
    begin_pulls(&s);
    for (int idle = 1; idle >= 0; idle--) {
        fl_parcel *p = fl_parcel_new();
        fl_parcel_want(p, "w", 2, rows);
        pull_parcel(&s, p, idle);
        CHECK_INT(s.answers, 1);
        CHECK_INT(s.tasks.n, !idle);
    }
    CHECK_NEAR(pulled_value(&s, 0, 0), 13, 0);
    run_task(&s, 0);
    pull_whole(&s, "w");
    CHECK_INT(s.tasks.n, 1); /* a whole tensor is shared by its owner */
    run_task(&s, 0);
    CHECK_INT(s.answers, 3);
    end_pulls(&s);
}

static void a_kept_value_is_copied_after_a_change(void)
{
    int64_t changes = 0;
    pull_scene s;
    begin_pulls(&s);
    fl_pulls_keep(s.pulls, "w", &changes, NULL);
    for (int i = 0; i < 4; i++) {
        ((float *)s.w.tensor.data)[0] = (float)i; /* in place */
        changes = i / 2;
        pull_whole(&s, "w");
        run_task(&s, 0);
        CHECK_NEAR(pulled_value(&s, 0, 0), i / 2 * 2, 0);
    }
    end_pulls(&s);
}

static void an_unknown_variable_is_named(void)
{
    pull_scene s;
    begin_pulls(&s);
    CHECK_INT(fl_pulls_owner(s.pulls, "b"), 1);
    CHECK_INT(fl_pulls_owner(s.pulls, "w2"), -1);
    fl_parcel *p = fl_parcel_new();
    fl_parcel_want(p, "b", -1, NULL);
    fl_parcel_want(p, "w2", -1, NULL);
    pull_parcel(&s, p, false);
    CHECK_INT(s.tasks.n, 1); /* behind the rounds of the first owner */
    CHECK_INT(s.tasks.at[0].owner, 0);
    run_task(&s, 0);
    CHECK_INT(s.kind, FL_MSG_ERROR);
    CHECK_STR(s.text, "pull: there is no variable \"w2\" on this server; the "
                      "nearest is \"w\"");
    end_pulls(&s);
}

const fl_test fl_tests[] = {
    {"the owner that finishes last answers", the_last_owner_answers},
    {"a few rows are read by the caller", the_caller_reads_a_few_rows},
    {"a kept value is copied after a change",
     a_kept_value_is_copied_after_a_change},
    {"an unknown variable is named", an_unknown_variable_is_named},
    {0},
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "pserver/pushes.h"

#include "base/test.h"

#include <math.h>

enum {
    WIDE = 40 /* elements of each gradient */
};

/* A server with two gradients, "a" and "b". */
typedef struct push_scene {
    fl_var grad[2];
    fl_update update[2];
    fl_map gradients;
    fl_pushes *pushes;
    float x[WIDE];
} push_scene;

static void begin_pushes(push_scene *s)
{
    *s = (push_scene){0};
    for (int i = 0; i < 2; i++) {
        s->grad[i] = (fl_var){.name = i ? "b" : "a",
                              .kind = FL_LOD_TENSOR,
                              .dtype = FL_F32,
                              .shape = {2, {WIDE, 1}}};
        s->update[i] = (fl_update){.number = i, .grad = &s->grad[i]};
        fl_map_put(&s->gradients, s->grad[i].name, &s->update[i]);
    }
    s->pushes = fl_pushes_new(
        &(fl_pushes_opts){.gradients = &s->gradients, .updates = 2});
}

static void end_pushes(push_scene *s)
{
    fl_pushes_free(s->pushes);
    fl_map_fini(&s->gradients);
}

/* Append elements first .. first + n of a gradient. Returns the parcel. */
static fl_parcel *add_elements(push_scene *s, fl_parcel *p, const char *name,
                               int64_t first, int64_t n)
{
    const fl_shape shape = {2, {WIDE, 1}};
    const fl_tensor t = fl_tensor_view(FL_F32, &shape, s->x);
    fl_parcel_add_slice(p, name, &t, first, n);
    return p;
}

static fl_parcel *elements(push_scene *s, const char *name, int64_t first,
                           int64_t n)
{
    return add_elements(s, fl_parcel_new(), name, first, n);
}

/* Check a push of a session of rank 0. Own: takes p. */
static fl_err check_parcel(push_scene *s, uint64_t session, fl_parcel *p)
{
    fl_parcel_scan(p);
    const fl_blob b = fl_parcel_blob(p);
    const fl_err err = fl_pushes_check(
        s->pushes, &(fl_staged){.session = {1, session}, .n = 1, .part = &b});
    fl_keeper_parcels.drop(NULL, b);
    fl_parcel_unref(p);
    return err;
}

static void a_refused_push_leaves_no_slice(void)
{
    push_scene s;
    begin_pushes(&s);
    CHECK_OK(check_parcel(&s, 1, elements(&s, "b", 10, 10)));
    for (int i = 0; i < 2; i++)
        CHECK_ERR(
            check_parcel(&s, 1,
                         add_elements(&s, elements(&s, "a", 0, 5), "b", 5, 6)),
            FL_EPROTO,
            "push: elements 5 to 10 of gradient \"b\" came after "
            "elements 10 to 19, while 30 of 40 were missing");
    CHECK_OK(check_parcel(
        &s, 1, add_elements(&s, elements(&s, "a", 0, 5), "b", 5, 5)));
    CHECK_ERR(check_parcel(&s, 1, elements(&s, "a", 4, 2)), FL_EPROTO,
              "elements 4 to 5 of gradient \"a\"");
    end_pushes(&s);
}

static void a_complete_gradient_may_come_again(void)
{
    push_scene s;
    begin_pushes(&s);
    for (int step = 0; step < 3; step++)
        for (int i = 3; i >= 0; i--)
            CHECK_OK(check_parcel(&s, 1, elements(&s, "a", 10 * i, 10)));
    end_pushes(&s);
}

static void a_new_session_begins_anew(void)
{
    push_scene s;
    begin_pushes(&s);
    CHECK_OK(check_parcel(&s, 1, elements(&s, "a", 0, 30)));
    CHECK_ERR(check_parcel(&s, 1, elements(&s, "a", 0, 30)), FL_EPROTO, "");
    CHECK_OK(check_parcel(&s, 2, elements(&s, "a", 0, 30)));
    end_pushes(&s);
}

static void slices_have_a_limit(void)
{
    const fl_shape shape = {2, {3 * 65536, 1}};
    push_scene s;
    fl_parcel *p = fl_parcel_new();
    fl_tensor t = {0};
    begin_pushes(&s);
    s.grad[0].shape = shape;
    CHECK_OK(fl_tensor_resize(&t, FL_F32, &shape));
    for (int i = 0; i < 65536; i++) /* one element of every two */
        fl_parcel_add_slice(p, "a", &t, 2 * i, 1);
    const fl_blob b = fl_parcel_blob(p);
    CHECK_OK(fl_pushes_check(
        s.pushes, &(fl_staged){.session = {1, 1}, .n = 1, .part = &b}));
    CHECK_ERR(check_parcel(&s, 1, elements(&s, "a", 1, 1)), FL_EPROTO,
              "push: gradient \"a\" comes in more than 65536 slices");
    fl_keeper_parcels.drop(NULL, b);
    fl_parcel_unref(p);
    fl_tensor_fini(&t);
    end_pushes(&s);
}

static void pushes_that_are_not_finite_are_counted(void)
{
    push_scene s;
    begin_pushes(&s);
    s.x[3] = NAN;
    CHECK_ERR(check_parcel(&s, 1, elements(&s, "a", 0, 10)), FL_EINVAL,
              "push: gradient \"a\" is not finite at element 3");
    CHECK_INT(fl_pushes_not_finite(s.pushes), 1);
    s.x[3] = 0;
    CHECK_OK(check_parcel(&s, 1, elements(&s, "a", 0, 10)));
    CHECK_INT(fl_pushes_not_finite(s.pushes), 1);
    end_pushes(&s);
}

const fl_test fl_tests[] = {
    {"a refused push leaves no slice", a_refused_push_leaves_no_slice},
    {"a complete gradient may come again", a_complete_gradient_may_come_again},
    {"a new session begins anew", a_new_session_begins_anew},
    {"slices have a limit", slices_have_a_limit},
    {"pushes that are not finite are counted",
     pushes_that_are_not_finite_are_counted},
    {0},
};

/* SPDX-License-Identifier: Apache-2.0 */
/* A store that outlives its process, killed at each of its stores in turn. */
#include "base/failpoint.h"
#include "pserver/test_store.h"
#include "state/test_state.h"

#include <fcntl.h>
#include <stdlib.h>

enum {
    ROUNDS = 3,
    WIDE = 2200, /* rows of 2: more than a block of elements, not a multiple,
                    and enough for a pull to share */
};

static const fl_transpile_opts two = {.pservers = A, .trainers = 2};

/* What a process needs to serve. */
typedef struct server {
    shop p;
    fl_job job;
    fl_recovery *recovery;
} server;

static void open_server(server *v, int owners)
{
    const fl_arg rate[] = {{"learning_rate", .f = 0.1}, {0}};
    shop *p = &v->p;
    *p = (shop){0};
    scene_begin(&p->s);
    scene_line(&p->s, WIDE, 2, &(fl_param_attr){.name = "w"},
               &(fl_param_attr){.name = "b"});
    scene_minimize(&p->s, "adam", rate);
    shop_cut(p, &two);
    v->job = fl_job_defaults((fl_job){.id = {7, 8}, .trainers = 2});
    CHECK_OK(fl_recovery_open(
        &(fl_recovery_opts){.job = &v->job, .owners = owners, .id = 5},
        &v->recovery));
    p->recovery = v->recovery;
    CHECK_OK(shop_try(p, owners, false));
    fl_statedir_ready(fl_recovery_dir(v->recovery));
}

static void close_server(server *v)
{
    shop_close(&v->p);
    fl_recovery_close(v->recovery);
}

/* How many rounds were reported: the image of the machine would say it. */
static int read_count(void)
{
    char path[512], digit = '0';
    snprintf(path, sizeof path, "%s/count", fl_test_dir());
    const int fd = open(path, O_RDONLY);
    if (fd >= 0 && read(fd, &digit, 1) == 1)
        close(fd);
    return digit - '0';
}

static void write_count(int n)
{
    const char digit = (char)('0' + n);
    char path[512];
    snprintf(path, sizeof path, "%s/count", fl_test_dir());
    const int fd = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK(fd >= 0 && pwrite(fd, &digit, 1, 0) == 1);
    close(fd);
}

static fl_parcel *make_gradients(int round, int trainer)
{
    float w[WIDE * 2], b[2];
    fl_parcel *p = fl_parcel_new();
    for (int i = 0; i < WIDE * 2; i++)
        w[i] = (float)((i * 7 + round * 13 + trainer * 5) % 17) - 8;
    for (int i = 0; i < 2; i++)
        b[i] = (float)(round - trainer + i);
    fl_tensor copy = {0};
    const fl_tensor wide = fl_tensor_view(FL_F32, &(fl_shape){2, {WIDE, 2}}, w);
    CHECK_OK(fl_tensor_copy(&copy, &wide));
    fl_parcel_add(p, "w@GRAD", &copy);
    fl_tensor_fini(&copy);
    const fl_tensor short_one = fl_tensor_view(FL_F32, &(fl_shape){1, {2}}, b);
    CHECK_OK(fl_tensor_copy(&copy, &short_one));
    fl_parcel_add(p, "b@GRAD", &copy);
    fl_tensor_fini(&copy);
    return p;
}

/* Half of the rounds are applied while a pull still reads the old values. */
static void run_rounds(void *owners)
{
    server v;
    open_server(&v, *(int *)owners);
    v.p.applied = read_count();
    while (v.p.applied < ROUNDS) {
        const int k = v.p.applied;
        if (k % 2 == 0)
            shop_pull(&v.p, "w", -1, NULL);
        SHOP_ROUND(&v.p, make_gradients(k, 0), make_gradients(k, 1));
        CHECK_STR(v.p.why, "");
        write_count(k + 1);
    }
    close_server(&v);
}

/* All kept values of the end, as bytes. The state is removed. */
static void take_values(int owners, fl_str *out)
{
    static const char *const names[] = {"w", "b"};
    server v;
    open_server(&v, owners);
    for (int i = 0; i < 2; i++) {
        const fl_value *x = fl_scope_find(v.p.scope, names[i]);
        fl_str_bytes(out, x->tensor.data, fl_tensor_bytes(&x->tensor));
    }
    fl_recovery_remove(v.recovery);
    close_server(&v);
    write_count(0);
}

static void compare_kills(int owners, int step)
{
    fl_str calm = {0};
    setenv("FLUID_STATE_DIR", fl_test_dir(), 1);
    CHECK(!test_kill_at(NULL, run_rounds, &owners));
    take_values(owners, &calm);
    for (int n = 1, hit = 1; hit; n += step) {
        char at[32];
        fl_str torn = {0};
        snprintf(at, sizeof at, "*:%d", n);
        hit = test_kill_at(at, run_rounds, &owners);
        CHECK(!test_kill_at(NULL, run_rounds, &owners));
        take_values(owners, &torn);
        CHECK_INT((int64_t)torn.n, (int64_t)calm.n);
        CHECK(!memcmp(torn.at, calm.at, calm.n));
        fl_str_fini(&torn);
    }
    fl_str_fini(&calm);
    unsetenv("FLUID_STATE_DIR");
}

static void add_bytes(const fl_parcel *p, fl_str *out)
{
    const fl_bytes b = p->item[0].data;
    char *at = fl_mem_alloc(b.size);
    fl_bytes_copy(b, 0, at, b.size);
    fl_str_bytes(out, at, b.size);
    fl_mem_free(at);
}

static void a_pull_keeps_what_it_reads(void)
{
    server v;
    fl_parcel *held[ROUNDS];
    fl_str before[ROUNDS] = {0}, after = {0};
    setenv("FLUID_STATE_DIR", fl_test_dir(), 1);
    open_server(&v, 1);
    for (int k = 0; k < ROUNDS; k++) {
        shop_pull(&v.p, "w", -1, NULL);
        held[k] = fl_parcel_ref(v.p.values);
        add_bytes(held[k], &before[k]);
        SHOP_ROUND(&v.p, make_gradients(k, 0), make_gradients(k, 1));
    }
    for (int k = 0; k < ROUNDS; k++) {
        add_bytes(held[k], &after);
        CHECK(!memcmp(after.at, before[k].at, before[k].n));
        CHECK(!k || memcmp(after.at, before[k - 1].at, after.n));
        fl_parcel_unref(held[k]);
        fl_str_fini(&after);
    }
    for (int k = 0; k < ROUNDS; k++)
        fl_str_fini(&before[k]);
    fl_recovery_remove(v.recovery);
    close_server(&v);
    unsetenv("FLUID_STATE_DIR");
}

static void a_kill_at_any_store_gives_the_same_bits(void)
{
    compare_kills(1, 1);
}

static void so_it_is_with_two_owners(void)
{
    compare_kills(2, 3);
}

const fl_test fl_tests[] = {
    {"a store that is killed at any store gives the same bits",
     a_kill_at_any_store_gives_the_same_bits},
    {"a pull keeps what it reads while rounds are applied",
     a_pull_keeps_what_it_reads},
    {"a store of two owners that is killed gives the same bits",
     so_it_is_with_two_owners},
    {0},
};

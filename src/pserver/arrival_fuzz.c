/* SPDX-License-Identifier: Apache-2.0 */
/* arrival_fuzz.c - any bytes as the programs of a job that arrives: a length of
 * two bytes, the server's program, the startup program. What is accepted must
 * also take start values. */
#include "base/disk.h"
#include "base/vec.h"
#include "ops/ops.h"
#include "pserver/arrival.h"
#include "pserver/pserver.h"
#include "wire/parcel.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static fl_err take_part(fl_arrival *a, fl_parcel *p, int64_t seq)
{
    bool done;
    const fl_blob b = fl_parcel_blob(p);
    const fl_err err = fl_arrival_take(a,
                                       &(fl_msg){.kind = FL_MSG_SETUP,
                                                 .seq = seq,
                                                 .count = 2,
                                                 .about = "a\nb\nc\nw [2]\n",
                                                 .blob = b},
                                       &done);
    fl_keeper_parcels.drop(NULL, b);
    fl_parcel_unref(p);
    return err;
}

/* A number for each variable, whatever it is. */
static void take_values(fl_arrival *a)
{
    static const float one[1] = {1};
    const int64_t dim = 1;
    const fl_shape shape = fl_shape_of(1, &dim);
    const fl_tensor t = fl_tensor_view(FL_F32, &shape, one);
    const fl_block *b = fl_program_block(fl_arrival_program(a), 0);
    fl_parcel *p = fl_parcel_new();
    for (fl_entry *e = NULL; (e = fl_map_next(&b->vars, e));)
        fl_parcel_add(p, e->key, &t);
    const fl_err ignored = take_part(a, p, 2);
    (void)ignored;
}

/* All operators, and the one of servers. */
static fl_registry *make_registry(void)
{
    FL_VEC(const fl_op_def *) ops = {0};
    fl_registry *r;
    for (int i = 0; i < fl_ops_count; i++)
        fl_push(&ops, fl_ops_table[i]);
    fl_push(&ops, &fl_op_listen_and_serv);
    if (fl_registry_new(ops.at, (int)ops.n, &r))
        abort();
    fl_vec_fini(&ops);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fl_registry *r; /* made once; a fuzzer never ends */
    static fl_entropy entropy;
    if (!r) {
        r = make_registry();
        entropy = fl_entropy_fake(1);
    }
    if (size < 2)
        return 0;
    const size_t most = size - 2, n = data[0] + 256 * (size_t)data[1];
    const size_t first = n < most ? n : most;
    const fl_exec_env env = {
        .registry = r, .disk = fl_disk_real(), .entropy = &entropy};
    fl_arrival *a = fl_arrival_new(
        &(fl_arrival_opts){.env = &env, .trainers = 2, .most = 1 << 20});
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add_bytes(p, "servers", "127.0.0.1:1", 11);
    fl_parcel_add_bytes(p, "program", data + 2, first);
    fl_parcel_add_bytes(p, "startup", data + 2 + first, most - first);
    if (!take_part(a, p, 1))
        take_values(a);
    fl_arrival_free(a);
    return 0;
}

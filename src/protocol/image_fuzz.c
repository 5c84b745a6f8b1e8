/* SPDX-License-Identifier: Apache-2.0 */
/* image_fuzz.c - any fields as the image of a server or a coordinator.
 *
 *     input := mode field*
 *
 * Head and checksum, which chance does not hit, are put right. An image that is
 * accepted must be one that the machine itself can write and read again. */
#include "protocol/coord.h"
#include "protocol/image.h"
#include "protocol/server.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static fl_err check_push(void *self, const fl_staged *by)
{
    return FL_OK;
}

static void apply(void *self, int64_t round, const fl_staged *by, int n)
{
}

static void read_values(void *self, fl_blob names, fl_peer to,
                        const fl_msg *reply)
{
}

static void try_server(const fl_job *job, const fl_str *bytes, bool again)
{
    const fl_store store = {NULL, fl_keeper_copies, check_push, apply,
                            read_values};
    fl_outbox out;
    fl_str image = {0};
    fl_outbox_init(&out);
    fl_server *s =
        fl_server_new(job, 0, (fl_state){7, 2}, &store, &out, FL_SEC);
    const fl_err err = fl_server_restore(s, bytes->at, bytes->n, FL_SEC);
    if (err && again)
        abort();
    if (!err) {
        fl_server_image(s, &image);
        fl_server_flush(s);
        fl_server_tick(s, 2 * FL_SEC);
        if (!again)
            try_server(job, &image, true);
    }
    fl_str_fini(&image);
    fl_server_free(s);
    fl_outbox_fini(&out);
}

static void try_coord(const fl_job *job, const fl_str *bytes, bool again)
{
    fl_outbox out;
    fl_str image = {0};
    fl_outbox_init(&out);
    fl_coord *c = fl_coord_new(job, (fl_state){7, 2}, &out, FL_SEC);
    const fl_err err = fl_coord_restore(c, bytes->at, bytes->n, FL_SEC);
    if (err && again)
        abort();
    if (!err) {
        fl_coord_image(c, &image);
        fl_coord_tick(c, 2 * FL_SEC);
        if (!again)
            try_coord(job, &image, true);
    }
    fl_str_fini(&image);
    fl_coord_free(c);
    fl_outbox_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    const fl_job job = fl_job_defaults((fl_job){.id = {1, 2},
                                                .servers = 2,
                                                .trainers = 1 + data[0] / 4 % 4,
                                                .async = data[0] & 2});
    const bool server = data[0] & 1;
    fl_str bytes = {0};
    fl_image im = fl_image_begin(
        &bytes, server ? FL_IMAGE_SERVER : FL_IMAGE_COORD, &job, 0);
    fl_str_bytes(&bytes, data + 1, size - 1);
    fl_image_finish(&im);
    if (server)
        try_server(&job, &bytes, false);
    else
        try_coord(&job, &bytes, false);
    fl_str_fini(&bytes);
    return 0;
}

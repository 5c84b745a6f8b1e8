/* SPDX-License-Identifier: Apache-2.0 */
/* control_test.c - images on a file system that is full. undo_test.c has those
 * of a process that is killed. */
#include "state/control.h"

#include "state/test_state.h"

#include <string.h>

enum {
    KB = 1 << 10
};

static fl_err save_bytes(fl_control *c, char byte, size_t n)
{
    static char bytes[512 * KB];
    memset(bytes, byte, sizeof bytes);
    return fl_control_save(c, &(fl_control_image){{bytes, bytes}, {n, 1}});
}

static void check_saved(fl_control *c, char byte, size_t n)
{
    fl_control_image image;
    CHECK_OK(fl_control_load(c, &image));
    CHECK_INT((int64_t)image.n[0], (int64_t)n);
    CHECK_INT((int64_t)image.n[1], 1);
    CHECK_INT(*(const char *)image.at[0], byte);
    CHECK_INT(((const char *)image.at[0])[n - 1], byte);
}

static void images_without_room_leave_the_old_ones(void)
{
    fl_statedir *d = test_state();
    fl_control *c;
    CHECK_OK(fl_control_new(d, 0, &c));
    CHECK_OK(save_bytes(c, 'a', 40 * KB));
    test_limit_files(64 * KB);
    CHECK_OK(fl_control_reserve(c, 20 * KB)); /* the first files have it */
    CHECK_ERR(fl_control_reserve(c, 100 * KB), FL_ENOMEM,
              "control-0: no room for 131072 bytes more; its file system has");
    CHECK_ERR(save_bytes(c, 'b', 100 * KB), FL_ENOMEM,
              "control-1: no room for 65536 bytes more");
    check_saved(c, 'a', 40 * KB);
    CHECK_OK(save_bytes(c, 'c', 60 * KB));
    test_limit_files(-1);
    check_saved(c, 'c', 60 * KB);
    fl_control_free(c);
    fl_statedir_remove(d);
    fl_statedir_close(d);
}

/* Both copies have it: the file system may be full after that. */
static void room_that_is_reserved_is_there(void)
{
    fl_statedir *d = test_state();
    fl_control *c;
    CHECK_OK(fl_control_new(d, 200 * KB, &c));
    test_limit_files(0);
    CHECK_OK(save_bytes(c, 'a', 200 * KB));
    CHECK_OK(save_bytes(c, 'b', 200 * KB));
    test_limit_files(-1);
    CHECK_OK(fl_control_reserve(c, 150 * KB));
    test_limit_files(0);
    CHECK_OK(save_bytes(c, 'c', 350 * KB));
    CHECK_OK(save_bytes(c, 'd', 350 * KB));
    test_limit_files(-1);
    fl_statedir_ready(d);
    fl_control_free(c);
    fl_statedir_close(d);
    d = test_state(); /* of the next process, which expects less */
    CHECK_OK(fl_control_new(d, 0, &c));
    check_saved(c, 'd', 350 * KB);
    test_limit_files(0);
    CHECK_OK(fl_control_reserve(c, 10 * KB));
    CHECK(fl_control_reserve(c, 200 * KB) == FL_ENOMEM);
    test_limit_files(-1);
    fl_control_free(c);
    fl_statedir_remove(d);
    fl_statedir_close(d);
}

const fl_test fl_tests[] = {
    {"images that have no room leave the old ones",
     images_without_room_leave_the_old_ones},
    {"room that is reserved for images is there",
     room_that_is_reserved_is_there},
    {0},
};

/* SPDX-License-Identifier: Apache-2.0 */
/* source_fuzz.c - any bytes as a file, a pipe or gzip. The first byte says how
 * they come: 1 through a pipe, 2 behind the head of a gzip member, 4 packed by
 * zlib, and then cut off where 8 is set. What was packed whole must come back.
 */
#include "base/mem.h"
#include "data/source.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    PIPE = 1,
    HEAD = 2,
    PACK = 4,
    CUT = 8,
    MOST = 60000,      /* bytes that a pipe takes without a reader */
    UNPACKED = 1 << 24 /* bytes that are read of what may be a bomb */
};

static void must(bool ok)
{
    if (!ok)
        abort();
}

static size_t pack(const uint8_t *data, size_t n, uint8_t *out, size_t room)
{
    z_stream z = {.next_in = (Bytef *)data,
                  .avail_in = (uInt)n,
                  .next_out = out,
                  .avail_out = (uInt)room};
    must(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) ==
         Z_OK);
    must(deflate(&z, Z_FINISH) == Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

static int open_bytes(bool as_pipe, const uint8_t *data, size_t n)
{
    int end[2];
    if (as_pipe)
        must(!pipe(end));
    else
        end[0] = end[1] = memfd_create("fuzz", 0);
    must(end[0] >= 0 && write(end[1], data, n) == (ssize_t)n);
    if (as_pipe)
        close(end[1]);
    else
        must(!lseek(end[0], 0, SEEK_SET));
    return end[0];
}

/* How much was read; *same: it is what `data` holds. */
static fl_err read_all(int fd, const uint8_t *data, size_t n, bool *same)
{
    static char buf[4099];
    fl_source *s;
    fl_cancel cancel;
    size_t got = 1, all = 0;
    must(!fl_cancel_init(&cancel));
    fl_err err = fl_source_of(fd, "fuzz", &cancel, &s);
    *same = true;
    while (!err && got && all < UNPACKED) {
        err = fl_source_read(s, buf, sizeof buf, &got);
        if (err)
            break;
        must(got <= sizeof buf);
        *same = *same && all + got <= n && !memcmp(data + all, buf, got);
        all += got;
    }
    *same = *same && all == n;
    fl_source_free(s);
    fl_cancel_fini(&cancel);
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
    static uint8_t bytes[2 * MOST];
    const int how = size ? data[0] : 0;
    const uint8_t *text = size ? data + 1 : data;
    size_t n = size ? size - 1 : 0, sent = 0;
    n = n < MOST / 2 ? n : MOST / 2;
    if (how & PACK) {
        sent = pack(text, n, bytes, sizeof bytes);
    } else {
        if (how & HEAD)
            memcpy(bytes, head, sent = sizeof head);
        if (n)
            memcpy(bytes + sent, text, n);
        sent += n;
    }
    const bool whole = how & PACK && !(how & CUT);
    sent = how & CUT ? sent / 2 : sent;
    const int fd = open_bytes(how & PIPE, bytes, sent);
    bool same;
    const fl_err err = read_all(fd, text, n, &same);
    close(fd);
    must(!whole || (!err && same));
    return 0;
}

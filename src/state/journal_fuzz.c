/* SPDX-License-Identifier: Apache-2.0 */
/* journal_fuzz.c - reads a journal of one file that has the fuzzer's bytes
 * behind a head that is right, or in place of it. The first byte chooses. */
#include "state/journal.h"

#include "base/memdisk.h"

#include <stdlib.h>
#include <string.h>

enum {
    OWNER = 7,
    HEAD_BYTES = 40, /* of a file of the journal */
    RECORDS_MOST = 1 << 16
};

#define NAME "j/journal-00000000000000000001-0000"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The head of a file, as a journal writes it. */
static void write_head(char head[HEAD_BYTES])
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_str bytes = {0};
    fl_journal *j;
    if (fl_journal_new(
            &(fl_journal_opts){
                .disk = d, .folder = "j", .owner = OWNER, .next = 1},
            &j))
        abort();
    fl_journal_free(j);
    if (d->read(d, NAME, HEAD_BYTES, &bytes) || bytes.n != HEAD_BYTES)
        abort();
    memcpy(head, bytes.at, HEAD_BYTES);
    fl_str_fini(&bytes);
    fl_memdisk_free(m);
}

static fl_err count_record(void *user, const fl_journal_record *r)
{
    uint64_t *next = user;
    if (r->number != *next || r->number > RECORDS_MOST)
        abort();
    ++*next;
    return FL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char head[HEAD_BYTES];
    if (!head[0])
        write_head(head);
    if (!size)
        return 0;
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    const fl_part part[] = {{head, data[0] & 1 ? HEAD_BYTES : 0},
                            {data + 1, size - 1}};
    uint64_t next = 1;
    fl_journal_end end;
    if (d->mkdirs(d, "j") || d->write(d, NAME, part, 2, false))
        abort();
    if (!fl_journal_read(d, "j", OWNER, 1, count_record, &next, &end) &&
        end.next != next)
        abort();
    fl_memdisk_free(m);
    return 0;
}

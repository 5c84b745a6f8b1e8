/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c - records that are written to a journal beside plain writes.
 *
 *     journal FOLDER SECONDS [BYTES [AHEAD]]
 *
 * Writes records of BYTES (4096) for SECONDS: one by one, each with a write and
 * an fdatasync of its own; then to a journal, with up to AHEAD (64) records
 * that are not yet on the disk, as so many trainers that wait for their
 * answers. Prints one line of JSON. */
#include "state/journal.h"
#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void die(const char *what)
{
    fprintf(stderr, "journal: %s: %s\n", what, fl_errmsg());
    exit(1);
}

static double seconds_since(int64_t begin)
{
    return (double)(fl_clock_now(fl_clock_real()) - begin) / (double)FL_SEC;
}

/* Records per second, each on the disk before the next. */
static double write_plainly(const char *path, double limit, const char *bytes,
                            size_t n)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const int64_t begin = fl_clock_now(fl_clock_real());
    int64_t records = 0;
    for (; fd >= 0 && seconds_since(begin) < limit; records++)
        if (write(fd, bytes, n) != (ssize_t)n || fdatasync(fd)) {
            perror(path);
            exit(1);
        }
    const double took = seconds_since(begin);
    close(fd);
    unlink(path);
    return (double)records / took;
}

static void count_group(void *user, uint64_t number)
{
    ++*(int64_t *)user;
}

/* The same with a journal; *groups: groups per second. */
static double write_journal(const char *folder, double limit, const char *bytes,
                            size_t n, uint64_t ahead, double *groups)
{
    const fl_part part = {bytes, n};
    fl_journal *j;
    int64_t written = 0;
    uint64_t number = 0;
    if (fl_journal_new(&(fl_journal_opts){.disk = fl_disk_real(),
                                          .folder = folder,
                                          .owner = 1,
                                          .next = 1,
                                          .written = count_group,
                                          .user = &written},
                       &j))
        die("cannot begin");
    const int64_t begin = fl_clock_now(fl_clock_real());
    while (seconds_since(begin) < limit) {
        if (fl_journal_add(j, 1, &part, 1, &number))
            die("cannot add");
        if (number > ahead && fl_journal_wait(j, number - ahead, 60 * FL_SEC))
            die("cannot wait");
    }
    if (fl_journal_wait(j, number, 60 * FL_SEC))
        die("cannot wait");
    const double took = seconds_since(begin);
    fl_journal_free(j);
    if (fl_journal_remove(fl_disk_real(), folder))
        die("cannot remove");
    *groups = (double)written / took;
    return (double)number / took;
}

int main(int n, char **word)
{
    if (n < 3)
        return 2;
    const double limit = atof(word[2]);
    const size_t size = n > 3 ? (size_t)atol(word[3]) : 4096;
    const uint64_t ahead = n > 4 ? (uint64_t)atol(word[4]) : 64;
    char *bytes = calloc(1, size), path[4096];
    double groups;
    snprintf(path, sizeof path, "%s/plain", word[1]);
    const double plain = write_plainly(path, limit, bytes, size);
    const double journal =
        write_journal(word[1], limit, bytes, size, ahead, &groups);
    printf("{\"bytes\": %zu, \"plain_per_s\": %.0f, \"plain_mb_per_s\": %.2f, "
           "\"records_per_s\": %.0f, \"groups_per_s\": %.0f, \"mb_per_s\": "
           "%.2f}\n",
           size, plain, plain * (double)size / 1e6, journal, groups,
           journal * (double)size / 1e6);
    free(bytes);
    return 0;
}

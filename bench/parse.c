/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c - click logs from text into tensors, on one core.
 *
 *     parse DIRECTORY BATCH SECONDS [COMMAND]
 *
 * Reads DIRECTORY/part-0 .. again and again: 13 dense values, 26 ids, a label.
 * COMMAND is a pipe command; "paddle read criteo --dim 1000001" reads Criteo's
 * lines natively. Prints one line of JSON. */
#include <fluid.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    IDS = 26,
    SLOTS = 1 + IDS + 1,
    FILES = 64,
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "parse: %s: %s\n", what, fl_errmsg());
    exit(1);
}

static int find_files(const char *folder, const char **files)
{
    static char names[FILES][1024];
    int n = 0;
    for (; n < FILES; n++) {
        snprintf(names[n], sizeof names[n], "%s/part-%d", folder, n);
        if (access(names[n], R_OK))
            break;
        files[n] = names[n];
    }
    return n;
}

static void describe(fl_data_slot *slot)
{
    static char name[IDS][8];
    slot[0] = (fl_data_slot){"dense", FL_F32, .shape = {2, {-1, 13}}};
    for (int i = 0; i < IDS; i++) {
        snprintf(name[i], sizeof name[i], "C%d", i + 1);
        slot[1 + i] = (fl_data_slot){name[i], FL_I64, .sparse = true};
    }
    slot[1 + IDS] = (fl_data_slot){"label", FL_I64, .shape = {2, {-1, 1}}};
}

static fl_reader_stats read_all(fl_dataset *d)
{
    fl_reader *r;
    fl_tensor t[SLOTS] = {0};
    int64_t rows = 1;
    if (fl_dataset_open(d, 1, NULL, &r))
        die("open");
    while (rows)
        if (fl_reader_next(r, t, &rows))
            die("next");
    const fl_reader_stats s = fl_reader_look(r);
    fl_reader_free(r);
    for (int i = 0; i < SLOTS; i++)
        fl_tensor_fini(&t[i]);
    return s;
}

int main(int argc, char **argv)
{
    const char *files[FILES];
    fl_data_slot slots[SLOTS];
    if (argc < 4)
        return fprintf(stderr, "usage: parse DIRECTORY BATCH SECONDS\n"), 2;
    describe(slots);
    fl_dataset *d = fl_dataset_new();
    const fl_dataset_opts opts = {
        .n_slots = SLOTS,
        .slots = slots,
        .files = files,
        .n_files = find_files(argv[1], files),
        .batch = atoi(argv[2]),
        .pipe = argc > 4 ? argv[4] : NULL,
    };
    if (fl_dataset_set(d, &opts))
        die("set");
    read_all(d); /* the files are in the page cache now */
    fl_reader_stats all = {0};
    const double start = now();
    while (now() - start < atof(argv[3])) {
        const fl_reader_stats s = read_all(d);
        all.bytes += s.bytes;
        all.examples += s.examples;
        all.read_ns += s.read_ns;
    }
    const double seconds = now() - start;
    printf("{\"MB_per_s\": %.1f, \"rows_per_s\": %.0f, \"read_share\": %.3f}\n",
           (double)all.bytes / seconds / 1e6, (double)all.examples / seconds,
           1e-9 * (double)all.read_ns / seconds);
    fl_dataset_free(d);
    return 0;
}

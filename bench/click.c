/* SPDX-License-Identifier: Apache-2.0 */
/* click.c - samples a second of the click model, data in memory.
 *
 *     click DATA_DIR BATCH SECONDS [nofuse]
 *
 * DATA_DIR/multislot/part-0.. as bench/clicks.py writes them. One thread.
 * Prints one line of JSON. */
#include "clicks.h"

#include <sys/resource.h>

/* Steps for so many seconds; one line of JSON. */
static void measure(fl_exe *exe, fl_net *n, fl_scope *s, const clicks *c,
                    const char *loss_name, double length)
{
    fl_feed feeds[FEEDS];
    fl_fetch loss = {.name = loss_name};
    long steps = 0;
    double mean = 0, began = seconds(CLOCK_MONOTONIC), cpu = 0;
    for (int at = 0; steps < WARM || seconds(CLOCK_MONOTONIC) - began < length;
         steps++) {
        if (steps == WARM) {
            began = seconds(CLOCK_MONOTONIC);
            cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
        }
        feed_clicks(c, at, feeds);
        must(!fl_exe_run(exe, fl_net_main(n), s, FEEDS, feeds, 1, &loss),
             "step");
        mean = 0.99 * mean + 0.01 * *(float *)loss.tensor.data / c->batch;
        at = at + 2 * c->batch <= c->n ? at + c->batch : 0;
    }
    double us =
        1e6 * (seconds(CLOCK_MONOTONIC) - began) / (double)(steps - WARM);
    cpu = 1e6 * (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) /
          (double)(steps - WARM);
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    printf("{\"task\": \"ctr\", \"batch\": %d, \"samples_per_s\": %.0f, "
           "\"step_us\": %.1f, \"cpu_us\": %.1f, \"steps\": %ld, "
           "\"loss\": %.4f, \"rss_mb\": %ld}\n",
           c->batch, c->batch * 1e6 / us, us, cpu, steps - WARM, mean,
           use.ru_maxrss / 1024);
    fl_tensor_fini(&loss.tensor);
}

int main(int argc, char **argv)
{
    if (argc < 4 || atoi(argv[2]) < 1) {
        fprintf(stderr, "usage: click DATA_DIR BATCH SECONDS [nofuse]\n");
        return 2;
    }
    clicks c = {0};
    read_clicks(argv[1], 0, atoi(argv[2]), &c);
    fl_engine *e = fl_engine_new();
    fl_net *n = fl_net_new(e);
    fl_net_seed(n, 1);
    fl_var *cost = build_clicks(n, &c);
    fl_scope *s = fl_scope_new();
    fl_exe *exe = fl_exe_new(e, &(fl_exe_opts){.no_fuse = argc > 4});
    must(!fl_exe_run(exe, fl_net_startup(n), s, 0, NULL, 0, NULL), "start");
    measure(exe, n, s, &c, fl_var_name(cost), atof(argv[3]));
    fl_exe_free(exe);
    fl_scope_free(s);
    fl_net_free(n);
    fl_engine_free(e);
    return 0;
}

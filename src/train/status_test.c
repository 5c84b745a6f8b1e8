/* SPDX-License-Identifier: Apache-2.0 */
#include "train/status.h"

#include "base/mem.h"
#include "base/test.h"

#include <math.h>
#include <unistd.h>

#define SEC INT64_C(1000000000)

static fl_progress half_way(void)
{
    return (fl_progress){.epoch = 3,
                         .threads = 2,
                         .examples = 1234500,
                         .batches = 12345,
                         .seconds = 31.5,
                         .rate = 39190.4,
                         .fraction = 0.5,
                         .eta = 71.6,
                         .loss = 0.48123456,
                         .auc = 0.70312,
                         .auc_trainers = 1,
                         .reading = 0.04,
                         .computing = 0.95,
                         .waiting = 0.01};
}

static fl_progress little_known(void)
{
    return (fl_progress){.threads = 1,
                         .examples = 100,
                         .batches = 1,
                         .seconds = 0.5,
                         .rate = 200,
                         .fraction = NAN,
                         .eta = NAN,
                         .loss = NAN,
                         .auc = NAN,
                         .computing = 1};
}

typedef void (*form)(fl_str *out, const fl_progress *p);

static void check(form f, fl_progress p, const char *want)
{
    fl_str out = {0};
    f(&out, &p);
    CHECK_STR(out.at, want);
    fl_str_fini(&out);
}

static void a_line_has_all_figures(void)
{
    fl_progress p = half_way();
    check(fl_status_text, p,
          "epoch 3  50%  1,234,500 examples  39,190/s  loss 0.48123  auc "
          "0.7031  reading 4% computing 95% waiting 1% of 2 threads  1m12s "
          "left");
    p.done = true;
    p.bad_lines = 7;
    check(fl_status_text, p,
          "epoch 3  1,234,500 examples in 31.5 s  39,190/s  loss 0.48123  auc "
          "0.7031  reading 4% computing 95% waiting 1% of 2 threads  7 bad "
          "lines");
    p.stopped = true;
    p.epoch = p.threads = 0;
    p.bad_lines = 0;
    check(fl_status_text, p,
          "1,234,500 examples, then asked to stop, in 31.5 s  39,190/s  loss "
          "0.48123  auc 0.7031  reading 4% computing 95% waiting 1%");
}

static void no_auc_is_shown_before_there_is_one(void)
{
    fl_progress p = {.loss = NAN,
                     .auc = NAN,
                     .auc_trainers = 2, /* but no examples are counted */
                     .fraction = NAN,
                     .eta = NAN};
    check(fl_status_text, p,
          "0 examples  0/s  reading 0% computing 0% waiting 0%");
}

static void an_auc_of_several_trainers_says_so(void)
{
    fl_progress p = little_known();
    p.auc = 0.75;
    p.auc_trainers = 2;
    check(fl_status_text, p,
          "100 examples  200/s  auc 0.7500 (2 trainers)  reading 0% computing "
          "100% waiting 0%");
}

static void a_line_leaves_out_what_is_not_known(void)
{
    check(fl_status_text, little_known(),
          "100 examples  200/s  reading 0% computing 100% waiting 0%");
}

static void json_has_the_same_figures(void)
{
    check(fl_status_json, half_way(),
          "{\"epoch\": 3, \"threads\": 2, \"examples\": 1234500, \"batches\": "
          "12345, \"bad_lines\": 0, \"seconds\": 31.5, \"rate\": 39190.4, "
          "\"fraction\": 0.5, \"eta\": 71.6, \"loss\": 0.481235, \"auc\": "
          "0.70312, \"auc_trainers\": 1, \"reading\": 0.04, \"computing\": "
          "0.95, \"waiting\": 0.01, "
          "\"done\": false, \"stopped\": false}");
    check(fl_status_json, little_known(),
          "{\"epoch\": 0, \"threads\": 1, \"examples\": 100, \"batches\": 1, "
          "\"bad_lines\": 0, \"seconds\": 0.5, \"rate\": 200, \"fraction\": "
          "null, \"eta\": null, \"loss\": null, \"auc\": null, "
          "\"auc_trainers\": 0, \"reading\": 0, "
          "\"computing\": 1, \"waiting\": 0, \"done\": false, \"stopped\": "
          "false}");
}

static void check_bar(int columns, const char *want)
{
    const fl_progress p = half_way();
    fl_str out = {0};
    fl_status_bar(&out, &p, columns);
    CHECK_STR(out.at, want);
    fl_str_fini(&out);
}

static void a_bar_stays_in_its_line(void)
{
    check_bar(60,
              "epoch 3  50%  1,234,500 examples  39,190/s  loss 0.48123  a");
    check_bar(80, "epoch 3  50%  1,234,500 examples  39,190/s  loss 0.48123  "
                  "auc 0.7031  1m12s lef");
    check_bar(92, "epoch 3  [====>   ] 50%  1,234,500 examples  39,190/s  "
                  "loss 0.48123  auc 0.7031  1m12s left");
}

static void words_choose_the_form(void)
{
    fl_status_mode m;
    CHECK_OK(fl_status_mode_of(NULL, true, &m));
    CHECK_INT(m, FL_STATUS_BAR);
    CHECK_OK(fl_status_mode_of("", false, &m));
    CHECK_INT(m, FL_STATUS_LINES);
    CHECK_OK(fl_status_mode_of("json", true, &m));
    CHECK_INT(m, FL_STATUS_JSON);
    CHECK_OK(fl_status_mode_of("off", true, &m));
    CHECK_INT(m, FL_STATUS_OFF);
    CHECK_ERR(fl_status_mode_of("loud", true, &m), FL_EINVAL,
              "is \"loud\", expected off, lines, json or bar");
}

/* Checked ten times a second for 12 s. */
static void lines_come_after_one_second_and_every_five(void)
{
    const fl_progress p = little_known();
    fl_str when = {0};
    fl_status s;
    int end[2];
    CHECK(!pipe(end));
    fl_status_init(&s, FL_STATUS_LINES, end[1]);
    for (int64_t ns = 0; ns < 12 * SEC; ns += SEC / 10)
        if (fl_status_due(&s, ns)) {
            fl_str_printf(&when, "%g ", (double)ns / (double)SEC);
            fl_status_show(&s, &p, ns);
        }
    CHECK_STR(when.at, "1 6 11 ");
    fl_str_fini(&when);
    close(end[0]);
    close(end[1]);
}

static void check_shown(fl_status_mode mode, bool clear, const char *want)
{
    char got[512] = "";
    fl_status s;
    int end[2];
    CHECK(!pipe(end));
    fl_status_init(&s, mode, end[1]);
    fl_progress p = little_known();
    fl_status_show(&s, &p, SEC);
    if (clear)
        fl_status_clear(&s);
    p.done = true;
    fl_status_show(&s, &p, 2 * SEC);
    close(end[1]);
    CHECK(read(end[0], got, sizeof got - 1) >= 0);
    CHECK_STR(got, want);
    close(end[0]);
}

static void a_bar_is_drawn_over_until_the_end(void)
{
    check_shown(FL_STATUS_BAR, false,
                "100 examples  200/s  reading 0% computing 100% waiting 0%"
                "\r\033[K"
                "100 examples in 0.5 s  200/s  reading 0% computing 100% "
                "waiting 0%\n");
    check_shown(FL_STATUS_BAR, true,
                "100 examples  200/s  reading 0% computing 100% waiting 0%"
                "\r\033[K"
                "100 examples in 0.5 s  200/s  reading 0% computing 100% "
                "waiting 0%\n");
    check_shown(FL_STATUS_OFF, true, "");
}

const fl_test fl_tests[] = {
    {"a line has all figures", a_line_has_all_figures},
    {"no AUC is shown before there is one",
     no_auc_is_shown_before_there_is_one},
    {"an AUC of several trainers says so", an_auc_of_several_trainers_says_so},
    {"a line leaves out what is not known",
     a_line_leaves_out_what_is_not_known},
    {"JSON has the same figures", json_has_the_same_figures},
    {"a bar stays in its line", a_bar_stays_in_its_line},
    {"words choose the form", words_choose_the_form},
    {"lines come after one second and every five",
     lines_come_after_one_second_and_every_five},
    {"a bar is drawn over until the end", a_bar_is_drawn_over_until_the_end},
    {0},
};

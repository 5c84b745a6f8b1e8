/* SPDX-License-Identifier: Apache-2.0 */
/* Trains networks on small click logs. The thread sanitizer runs this, too. */
#include "train/train.h"

#include "base/clock.h"
#include "data/test_data.h"
#include "graph/program.h"

#include <math.h>
#include <stdlib.h>

enum {
    FILES = 3,
    LINES = 40, /* lines of a file */
    BATCH = 8,
    HEIGHT = 100,
};

/* Threads update parameters without locks, on purpose. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:step_on_shared_parameters\n";
}

/* --- a job --- */

typedef struct job {
    fl_engine *e;
    fl_net *n;
    fl_scope *s;
    fl_dataset *d;
    const char *loss, *auc;
    fl_str printed;
    fl_progress last;
    int polls, wish_after; /* number of polls; the poll that makes a wish */
    int wish;
} job;

static const char *files[FILES];

/* The label depends on the sum of the ids; x is random. */
static void write_logs(void)
{
    for (int f = 0; f < FILES; f++) {
        char name[32];
        fl_str text = {0};
        for (int i = 0; i < LINES; i++) {
            const int k = f * LINES + i, id = k * 37 % HEIGHT;
            const int id2 = k * 11 % HEIGHT;
            fl_str_printf(&text, "2 %g %g ", k % 7 * 0.1, k % 5 * -0.1);
            fl_str_printf(&text, k % 3 ? "2 %d %d" : "1 %d", id, id2);
            fl_str_printf(&text, " 1 %d\n", id % 2);
        }
        snprintf(name, sizeof name, "part-%d", f);
        files[f] = test_file(name, text.at);
        fl_str_fini(&text);
    }
}

static fl_var *build(fl_net *n, job *j)
{
    fl_init start = {.kind = "uniform", .a = -0.5, .b = 0.5, .seed = 3};
    fl_param_attr table = {.name = "table", .init = &start};
    int64_t size[] = {HEIGHT, 4};
    fl_var *x = FL_LAYER(n, "data", {"name", .s = "x"}, {"shape", .i = 2});
    fl_var *ids = FL_LAYER(n, "data", {"name", .s = "ids"}, {"shape", .i = 1},
                           {"lod_level", .i = 1}, {"dtype", .i = FL_I64});
    fl_var *label = FL_LAYER(n, "data", {"name", .s = "label"},
                             {"shape", .i = 1}, {"dtype", .i = FL_I64});
    fl_var *in[] = {x, FL_LAYER(n, "embedding", {"input", .var = ids},
                                {"size", .n = 2, .ints = size},
                                {"is_sparse", .b = true},
                                {"param_attr", .attr = &table})};
    in[1] = FL_LAYER(n, "sequence_pool", {"input", .var = in[1]},
                     {"pool_type", .s = "sum"});
    fl_var *h =
        FL_LAYER(n, "concat", {"input", .n = 2, .vars = in}, {"axis", .i = 1});
    h = FL_LAYER(n, "fc", {"input", .var = h}, {"size", .i = 2},
                 {"act", .s = "softmax"});
    fl_var *auc = FL_LAYER(n, "auc", {"input", .var = h},
                           {"label", .var = label}, {"slide_steps", .i = 3});
    fl_var *cost = FL_LAYER(n, "cross_entropy", {"input", .var = h},
                            {"label", .var = label});
    cost = FL_LAYER(n, "mean", {"x", .var = cost});
    j->loss = fl_var_name(cost);
    j->auc = fl_var_name(auc);
    return cost;
}

static void job_init(job *j, const fl_dataset_opts *opts)
{
    *j = (job){.e = fl_engine_new(), .s = fl_scope_new()};
    j->n = fl_net_new(j->e);
    fl_net_seed(j->n, 5);
    fl_var *cost = build(j->n, j);
    CHECK_OK(fl_minimize(j->n, cost, "sgd",
                         (fl_arg[]){{"learning_rate", .f = 0.5}, {0}}));
    fl_exe *exe = fl_exe_new(j->e, NULL);
    CHECK_OK(fl_exe_run(exe, fl_net_startup(j->n), j->s, 0, NULL, 0, NULL));
    fl_exe_free(exe);
    fl_dataset_opts o = *opts;
    if (!o.n_files) {
        write_logs();
        o.n_files = FILES;
        o.files = files;
    }
    o.batch = o.batch ? o.batch : BATCH;
    j->d = test_set(&o);
}

static void job_fini(job *j)
{
    fl_str_fini(&j->printed);
    fl_dataset_free(j->d);
    fl_scope_free(j->s);
    fl_net_free(j->n);
    fl_engine_free(j->e);
}

static int print(void *user, const char *text)
{
    fl_str_add(&((job *)user)->printed, text);
    return 0;
}

static int ask(void *user)
{
    job *j = user;
    return ++j->polls == j->wish_after ? j->wish : FL_GO_ON;
}

static fl_err train(job *j, const fl_train_opts *opts)
{
    fl_train_opts o = *opts;
    o.program = o.program ? o.program : fl_net_main(j->n);
    o.scope = j->s;
    o.dataset = j->d;
    o.print = o.print ? o.print : print;
    o.status = "off";
    o.poll = o.poll ? o.poll : ask;
    o.user = o.user ? o.user : j;
    return fl_train(j->e, &o, &j->last);
}

static const fl_train_opts usual = {0};

/* A hash of a tensor's bytes. */
static uint64_t bits_of(job *j, const char *name)
{
    fl_tensor t = {0};
    uint64_t h = 1469598103934665603u;
    CHECK_OK(fl_scope_get(j->s, name, &t));
    for (size_t i = 0; i < fl_tensor_bytes(&t); i++)
        h = (h ^ ((unsigned char *)t.data)[i]) * 1099511628211u;
    fl_tensor_fini(&t);
    return h;
}

/* --- results --- */

static double learn(const fl_dataset_opts *opts, bool load, uint64_t *bits)
{
    job j;
    job_init(&j, opts);
    if (load) {
        CHECK_OK(fl_dataset_load(j.d));
        CHECK_OK(fl_dataset_wait(j.d, -1));
    }
    for (int epoch = 0; epoch < 10; epoch++) {
        CHECK_OK(train(&j, &usual));
        CHECK_INT(j.last.examples, FILES * LINES);
        CHECK(j.last.done && !j.last.stopped);
    }
    CHECK_INT(j.last.threads, opts->threads ? opts->threads : 1);
    *bits = bits_of(&j, "table") ^ bits_of(&j, "fc_0.w_0");
    const double loss = j.last.loss;
    job_fini(&j);
    return loss;
}

static void one_thread_learns_the_same_bits_each_time(void)
{
    uint64_t first, again, loaded;
    const fl_dataset_opts o = {0};
    CHECK(learn(&o, false, &first) < 0.35);
    learn(&o, false, &again);
    learn(&o, true, &loaded);
    CHECK(first == again);
    CHECK(first == loaded);
}

static void it_learns_what_single_runs_learn(void)
{
    job a, b;
    fl_reader *r;
    fl_tensor t[TEST_SLOTS] = {0};
    fl_feed feeds[TEST_SLOTS];
    int64_t rows;
    job_init(&a, &(fl_dataset_opts){0});
    job_init(&b, &(fl_dataset_opts){0});
    CHECK_OK(train(&a, &usual));
    fl_exe *exe = fl_exe_new(b.e, NULL);
    CHECK_OK(fl_dataset_open(b.d, 1, NULL, &r));
    while (!fl_reader_next(r, t, &rows) && rows) {
        for (int i = 0; i < TEST_SLOTS; i++)
            feeds[i] = (fl_feed){test_slots[i].name, t[i]};
        CHECK_OK(
            fl_exe_run(exe, fl_net_main(b.n), b.s, TEST_SLOTS, feeds, 0, NULL));
    }
    CHECK(bits_of(&a, "table") == bits_of(&b, "table"));
    CHECK(bits_of(&a, "fc_0.w_0") == bits_of(&b, "fc_0.w_0"));
    for (int i = 0; i < TEST_SLOTS; i++)
        fl_tensor_fini(&t[i]);
    fl_reader_free(r);
    fl_exe_free(exe);
    job_fini(&a);
    job_fini(&b);
}

static void threads_learn_together(void)
{
    uint64_t bits;
    for (int threads = 2; threads <= 3; threads++) {
        CHECK(learn(&(fl_dataset_opts){.threads = threads}, false, &bits) <
              0.4);
        CHECK(learn(&(fl_dataset_opts){.threads = threads}, true, &bits) < 0.4);
    }
}

static void there_are_no_more_threads_than_files(void)
{
    job j;
    job_init(&j, &(fl_dataset_opts){.threads = 10});
    CHECK_OK(train(&j, &usual));
    CHECK_INT(j.last.threads, FILES);
    CHECK_OK(train(&j, &(fl_train_opts){.threads = 1}));
    CHECK_INT(j.last.threads, 1);
    CHECK_OK(fl_dataset_load(j.d));
    CHECK_OK(fl_dataset_wait(j.d, -1));
    CHECK_OK(train(&j, &(fl_train_opts){.threads = 20}));
    CHECK_INT(j.last.threads, FILES * LINES / BATCH);
    job_fini(&j);
}

/* --- output --- */

static int count_of(const char *text, const char *part)
{
    int n = 0;
    for (; text && (text = strstr(text, part)); text++)
        n++;
    return n;
}

static void fetches_are_printed_every_few_batches(void)
{
    job j;
    job_init(&j, &(fl_dataset_opts){0});
    const char *fetches[] = {j.auc, j.loss}, *labels[] = {"auc", "cost"};
    CHECK_OK(train(&j, &(fl_train_opts){.n_fetches = 2,
                                        .fetches = fetches,
                                        .labels = labels,
                                        .period = 4}));
    CHECK_INT(count_of(j.printed.at, "auc\tauc_0.tmp_0\t\n\tlod: {}\n\tdim: 1"
                                     "\n\tlayout: NCHW\n\tdtype: double\n"
                                     "\tdata: ["),
              3); /* reports for 15 batches */
    CHECK_INT(count_of(j.printed.at, "cost\tmean_0.tmp_0\t\n"), 3);
    CHECK(fl_starts_with(j.printed.at, "auc\t"));
    job_fini(&j);
}

static void loss_and_auc_are_known_without_fetches(void)
{
    job j;
    job_init(&j, &(fl_dataset_opts){0});
    CHECK_OK(train(&j, &usual));
    CHECK(j.last.loss > 0.1 && j.last.loss < 1);
    CHECK(j.last.auc > 0.1 && j.last.auc <= 1);
    CHECK_NEAR(j.last.fraction, 1, 0);
    CHECK_NEAR(j.last.reading + j.last.computing + j.last.waiting, 1, 1e-9);
    CHECK_INT(j.last.batches, FILES * LINES / BATCH);
    CHECK(j.last.rate > 0);
    job_fini(&j);
}

static int refuse(void *user, const char *text)
{
    return 1;
}

static void who_prints_may_end_it(void)
{
    job j;
    job_init(&j, &(fl_dataset_opts){0});
    CHECK_ERR(train(&j, &(fl_train_opts){.n_fetches = 1,
                                         .fetches = &j.loss,
                                         .period = 1,
                                         .print = refuse}),
              FL_EINTR, "training was interrupted after");
    job_fini(&j);
}

static void an_unknown_fetch_is_refused(void)
{
    job j;
    const char *name = "nowhere";
    job_init(&j, &(fl_dataset_opts){0});
    CHECK_ERR(train(&j, &(fl_train_opts){.n_fetches = 1, .fetches = &name}),
              FL_ENOENT, "fetch \"nowhere\": the program has no such variable");
    job_fini(&j);
}

/* --- errors and interruptions --- */

static void a_bad_line_ends_it_and_is_told(void)
{
    const char *good = test_file("good", "2 1 2 1 3 1 0\n");
    const char *bad = test_file("bad", "2 1 2 1 3 1 0\n2 1 2 1 x 1 0\n");
    for (int threads = 1; threads <= 2; threads++) {
        job j;
        job_init(&j, &(fl_dataset_opts){.n_files = 2,
                                        .files = (const char *[]){good, bad},
                                        .threads = threads});
        CHECK_ERR(train(&j, &usual), FL_EPROTO, "bad:2:9: ");
        CHECK_OK(train(&j, &(fl_train_opts){0}) ? FL_OK : FL_EIO);
        job_fini(&j);
    }
}

static void bad_lines_may_be_skipped(void)
{
    const char *bad = test_file("bad", "2 1 2 1 3 1 0\n2 1 2 1 x 1 0\n");
    job j;
    job_init(&j,
             &(fl_dataset_opts){.n_files = 1, .files = &bad, .bad_lines = 1});
    CHECK_OK(train(&j, &usual));
    CHECK_INT(j.last.examples, 1);
    CHECK_INT(j.last.bad_lines, 1);
    job_fini(&j);
}

static void no_files_and_lost_files_are_told(void)
{
    const char *lost = "/nowhere/part-0";
    job j;
    job_init(&j, &(fl_dataset_opts){.n_files = 1, .files = &lost});
    CHECK_ERR(train(&j, &usual), FL_ENOENT, "/nowhere/part-0: cannot open it");
    CHECK_OK(fl_dataset_set(
        j.d, &(fl_dataset_opts){.n_slots = TEST_SLOTS, .slots = test_slots}));
    CHECK_ERR(train(&j, &usual), FL_EINVAL, "the list of files is empty");
    job_fini(&j);
}

static void a_program_that_lacks_its_parameters_says_what_to_do(void)
{
    job j;
    job_init(&j, &(fl_dataset_opts){.threads = 2});
    CHECK(fl_scope_erase(j.s, "table"));
    CHECK_ERR(train(&j, &usual), FL_ENOENT, "run the startup program first");
    job_fini(&j);
}

/* A reader of a FIFO without a writer would block for ever. */
static void a_wish_ends_readers_that_wait(void)
{
    static const fl_err ends[] = {FL_OK, FL_EINTR, FL_OK};
    const char *file = test_file("any", "");
    for (int wish = FL_END_NOW; wish <= FL_END_STEP; wish++) {
        job j;
        job_init(&j, &(fl_dataset_opts){
                         .n_files = 1, .files = &file, .pipe = "sleep 600"});
        j.wish_after = 2;
        j.wish = wish;
        const int64_t start = fl_clock_now(fl_clock_real());
        CHECK_INT(train(&j, &usual), ends[wish]);
        CHECK(fl_clock_now(fl_clock_real()) - start < 60 * FL_SEC);
        CHECK_INT(j.last.stopped, wish == FL_END_STEP);
        job_fini(&j);
    }
}

/* Each thread has its own copy of a persistable temporary. */
static void a_temporary_that_is_kept_does_no_harm(void)
{
    job j;
    fl_tensor t = {0};
    const char *name = NULL;
    job_init(&j, &(fl_dataset_opts){.threads = 3, .batch = 7});
    fl_block *b = fl_program_block(fl_net_main(j.n), 0);
    fl_var *v = fl_block_var(b, "concat_0.tmp_0");
    CHECK(v);
    v->persistable = true;
    fl_var_touch(v);
    name = fl_var_name(v);
    for (int i = 0; i < 5; i++)
        CHECK_OK(train(&j, &usual));
    CHECK_OK(fl_scope_get(j.s, name, &t));
    CHECK_INT(t.shape.dim[1], 6);
    fl_tensor_fini(&t);
    job_fini(&j);
}

static void a_program_without_updates_learns_nothing(void)
{
    job j;
    fl_net *n;
    job_init(&j, &(fl_dataset_opts){.threads = 2});
    n = fl_net_new(j.e);
    fl_var *cost = build(n, &j);
    const char *loss = fl_var_name(cost);
    const uint64_t before = bits_of(&j, "table");
    CHECK_OK(train(&j, &(fl_train_opts){.program = fl_net_main(n),
                                        .infer = true,
                                        .n_fetches = 1,
                                        .fetches = &loss,
                                        .labels = (const char *[]){"loss"},
                                        .period = 1}));
    CHECK(bits_of(&j, "table") == before);
    CHECK(j.last.loss > 0);
    fl_net_free(n);
    job_fini(&j);
}

const fl_test fl_tests[] = {
    {"one thread learns the same bits each time",
     one_thread_learns_the_same_bits_each_time},
    {"it learns what single runs learn", it_learns_what_single_runs_learn},
    {"threads learn together", threads_learn_together},
    {"there are no more threads than files",
     there_are_no_more_threads_than_files},
    {"fetches are printed every few batches",
     fetches_are_printed_every_few_batches},
    {"loss and AUC are known without fetches",
     loss_and_auc_are_known_without_fetches},
    {"who prints may end it", who_prints_may_end_it},
    {"an unknown fetch is refused", an_unknown_fetch_is_refused},
    {"a bad line ends it and is told", a_bad_line_ends_it_and_is_told},
    {"bad lines may be skipped", bad_lines_may_be_skipped},
    {"no files and lost files are told", no_files_and_lost_files_are_told},
    {"a program that lacks its parameters says what to do",
     a_program_that_lacks_its_parameters_says_what_to_do},
    {"a wish ends readers that wait", a_wish_ends_readers_that_wait},
    {"a temporary that is kept does no harm",
     a_temporary_that_is_kept_does_no_harm},
    {"a program without updates learns nothing",
     a_program_without_updates_learns_nothing},
    {0},
};

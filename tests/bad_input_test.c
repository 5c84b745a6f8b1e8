/* SPDX-License-Identifier: Apache-2.0 */
/* Bad input, end to end: one sentence that names the op or the file, and where;
 * no crash; no memory by a claimed size. What loads all the same is run. */
#include "fluid.h"

#include "base/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum {
    MOST = 3 << 20,  /* bytes of a file here */
    SLACK = 24 << 10 /* KiB that a refusal may take */
};

/* A line is trained for a step and saved: a program with its gradients and
 * updates, an inference model, its parameters. */
typedef struct world {
    fl_engine *e;
    fl_net *n;
    fl_scope *s;
    fl_exe *exe;
    const char *loss;
} world;

static const float x[] = {1, 2, 3, 4}, y[] = {3, 7};

static fl_feed feed(const char *name, int64_t columns, const float *data)
{
    fl_shape s = {2, {2, columns}};
    return (fl_feed){name, fl_tensor_view(FL_F32, &s, data)};
}

static fl_err run(world *w, const fl_program *p, const char *fetch)
{
    fl_feed feeds[] = {feed("x", 2, x), feed("y", 1, y)};
    fl_fetch got = {fetch, {0}};
    fl_err err = fl_exe_run(w->exe, p, w->s, 2, feeds, fetch ? 1 : 0, &got);
    fl_tensor_fini(&got.tensor);
    return err;
}

static const char *path(const char *name)
{
    static char text[256];
    snprintf(text, sizeof text, "%s/%s", fl_test_dir(), name);
    return text;
}

static void build(fl_net *n, const char **loss, const char **out)
{
    fl_var *in = FL_LAYER(n, "data", {"name", .s = "x"}, {"shape", .i = 2});
    fl_var *want = FL_LAYER(n, "data", {"name", .s = "y"}, {"shape", .i = 1});
    fl_var *fc = FL_LAYER(n, "fc", {"input", .var = in}, {"size", .i = 1},
                          {"act", .s = "tanh"});
    fl_var *cost = FL_LAYER(n, "square_error_cost", {"input", .var = fc},
                            {"label", .var = want});
    fl_var *mean = FL_LAYER(n, "mean", {"x", .var = cost});
    CHECK_OK(fl_minimize(
        n, mean, "momentum",
        (fl_arg[]){{"learning_rate", .f = 0.05}, {"momentum", .f = 0.9}, {0}}));
    *loss = fl_var_name(mean);
    *out = fl_var_name(fc);
}

static void world_init(world *w)
{
    const char *in[] = {"x"}, *out;
    *w = (world){.e = fl_engine_new()};
    w->n = fl_net_new(w->e);
    w->s = fl_scope_new();
    w->exe = fl_exe_new(w->e, NULL);
    build(w->n, &w->loss, &out);
    CHECK_OK(fl_exe_run(w->exe, fl_net_startup(w->n), w->s, 0, NULL, 0, NULL));
    CHECK_OK(run(w, fl_net_main(w->n), w->loss));
    CHECK_OK(fl_program_save(w->e, fl_net_main(w->n), path("train")));
    CHECK_OK(fl_model_save(w->e, fl_net_main(w->n), w->s, path("model"), 1, in,
                           1, &out, NULL));
    CHECK_INT(remove(path("model/__manifest__")), 0); /* it would find all */
}

static void world_fini(world *w)
{
    fl_exe_free(w->exe);
    fl_scope_free(w->s);
    fl_net_free(w->n);
    fl_engine_free(w->e);
}

/* --- files --- */

static size_t slurp(const char *file, unsigned char *bytes)
{
    FILE *f = fopen(file, "rb");
    CHECK(f);
    size_t n = fread(bytes, 1, MOST, f);
    fclose(f);
    return n;
}

static void spit(const char *file, const unsigned char *bytes, size_t n)
{
    FILE *f = fopen(file, "wb");
    CHECK(f);
    CHECK(fwrite(bytes, 1, n, f) == n);
    fclose(f);
}

/* It failed: one sentence, in one line, which names the file. */
static void check_sentence(const char *file)
{
    const char *said = fl_errmsg();
    if (strncmp(said, file, strlen(file)) || strchr(said, '\n') ||
        strlen(said) < strlen(file) + 8)
        print_error("\"%s\" for %s\n", said, file);
    CHECK(!strncmp(said, file, strlen(file)));
    CHECK(!strchr(said, '\n'));
    CHECK(strlen(said) > strlen(file) + 8);
}

static void try_program(world *w, const char *file)
{
    fl_program *p;
    char *text = NULL;
    if (fl_program_load(w->e, file, &p)) {
        check_sentence(file);
        return;
    }
    if (run(w, p, NULL))
        CHECK(*fl_errmsg() && !strchr(fl_errmsg(), '\n'));
    if (!fl_show(w->e, file, &text))
        fl_free(text);
    fl_program_free(p);
}

static void try_parameter(world *w, const char *file)
{
    fl_scope *s = fl_scope_new();
    fl_model m;
    if (fl_model_load(w->e, path("model"), s, NULL, &m))
        check_sentence(file);
    else
        fl_model_fini(&m);
    fl_scope_free(s);
}

/* The file cut short after each byte, then with a bit of each byte turned. */
static void spoil(world *w, const char *file,
                  void (*try)(world *, const char *))
{
    static unsigned char bytes[MOST];
    size_t n = slurp(file, bytes);
    for (size_t i = 0; i < n; i++) {
        spit(file, bytes, i);
        try(w, file);
    }
    for (size_t i = 0; i < n * 2; i++) {
        unsigned char bit = i % 2 ? 1 << (i / 2) % 8 : 1 << (i / 2 + 3) % 8;
        bytes[i / 2] ^= bit;
        spit(file, bytes, n);
        try(w, file);
        bytes[i / 2] ^= bit;
    }
    spit(file, bytes, n);
}

static void a_spoilt_program_is_refused_or_runs(void)
{
    world w;
    char file[256];
    world_init(&w);
    strcpy(file, path("train"));
    spoil(&w, file, try_program);
    fl_program *p;
    CHECK_OK(fl_program_load(w.e, file, &p));
    CHECK_OK(run(&w, p, w.loss)); /* untouched, it trains */
    fl_program_free(p);
    world_fini(&w);
}

static void a_spoilt_parameter_is_refused_or_loads(void)
{
    world w;
    char file[256];
    world_init(&w);
    strcpy(file, path("model/fc_0.w_0"));
    spoil(&w, file, try_parameter);
    world_fini(&w);
}

/* --- claims --- */

static long peak(void) /* KiB */
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return r.ru_maxrss;
}

/* Showing or loading it fails, and takes next to no memory. */
static void check_refused(world *w, const char *file, const char *sentence)
{
    char *text;
    fl_program *p;
    long before = peak();
    CHECK_ERR(fl_show(w->e, file, &text), FL_EPROTO, sentence);
    check_sentence(file);
    CHECK_ERR(fl_program_load(w->e, file, &p), FL_EPROTO, file);
    CHECK(peak() - before < SLACK);
}

static void a_tensor_of_2_to_the_60_is_refused(void)
{
    /* versions, no LoD, then the description: f32, [2^60] */
    static const unsigned char bytes[] = {
        0,  0,    0,    0,    0,    0,    0,    0,    0,    0,   0,
        0,  0,    0,    0,    0,    12,   0,    0,    0,    8,   5,
        16, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10};
    world w;
    fl_model m;
    char file[256];
    world_init(&w);
    strcpy(file, path("model/fc_0.w_0"));
    spit(file, bytes, sizeof bytes);
    long before = peak();
    CHECK_ERR(fl_model_load(w.e, path("model"), w.s, NULL, &m), FL_EPROTO,
              "1152921504606846976");
    check_sentence(file);
    check_refused(&w, file, "1152921504606846976");
    CHECK(peak() - before < SLACK);
    world_fini(&w);
}

static void two_megabytes_of_nothing_are_refused(void)
{
    static unsigned char bytes[2 << 20];
    world w;
    world_init(&w);
    for (size_t i = 0; i < sizeof bytes; i += 2)
        bytes[i] = 0x0a; /* a block of no bytes */
    char file[256];
    strcpy(file, path("empty"));
    spit(file, bytes, sizeof bytes);
    check_refused(&w, file, "");
    world_fini(&w);
}

/* --- one thing wrong --- */

static unsigned char *find(unsigned char *bytes, size_t n, const char *what)
{
    unsigned char *at = memmem(bytes, n, what, strlen(what));
    CHECK(at);
    return at;
}

static void says_which_op_or_attribute_is_wrong(void)
{
    static unsigned char bytes[MOST];
    static const char attr[] = "x_num_col_dims";
    world w;
    fl_program *p;
    char file[256];
    world_init(&w);
    strcpy(file, path("train"));
    size_t n = slurp(file, bytes);
    unsigned char *type = find(bytes, n, "\x03mul") + 3;
    *type = 'x';
    spit(file, bytes, n);
    CHECK_ERR(fl_program_load(w.e, file, &p), FL_ENOENT,
              "unknown op \"mux\"; did you mean \"mul\"? (op 0 in block 0)");
    check_sentence(file);
    *type = 'l';
    unsigned char *kind = find(bytes, n, attr) + strlen(attr) + 1;
    *kind = 2; /* a string */
    spit(file, bytes, n);
    CHECK_ERR(fl_program_load(w.e, file, &p), FL_EPROTO, "x_num_col_dims");
    check_sentence(file);
    world_fini(&w);
}

static void says_what_is_wrong_with_a_run(void)
{
    world w;
    world_init(&w);
    const fl_program *p = fl_net_main(w.n);
    fl_feed one[] = {feed("x", 2, x)};
    fl_feed wide[] = {feed("x", 1, x), feed("y", 1, y)};
    CHECK_ERR(fl_exe_run(w.exe, p, w.s, 1, one, 0, NULL), FL_ENOENT,
              "\"y\" is read, but nothing writes it: feed it (fed: x) (op 3 "
              "\"elementwise_sub\" in block 0)");
    CHECK_ERR(fl_exe_run(w.exe, p, w.s, 2, wide, 0, NULL), FL_ESHAPE,
              "feed \"x\" is float32[2,1], expected float32[-1,2]");
    fl_tensor narrow = fl_tensor_view(FL_F32, &(fl_shape){2, {1, 1}}, x);
    CHECK_OK(fl_scope_set(w.s, "fc_0.w_0", &narrow));
    CHECK_ERR(run(&w, p, NULL), FL_ESHAPE, "in block 0)");
    world_fini(&w);
}

const fl_test fl_tests[] = {
    {"a spoilt program is refused or runs",
     a_spoilt_program_is_refused_or_runs},
    {"a spoilt parameter is refused or loads",
     a_spoilt_parameter_is_refused_or_loads},
    {"a tensor of 2^60 elements is refused",
     a_tensor_of_2_to_the_60_is_refused},
    {"two megabytes of empty messages are refused",
     two_megabytes_of_nothing_are_refused},
    {"a file says which op or attribute is wrong",
     says_which_op_or_attribute_is_wrong},
    {"a run says what is wrong with it", says_what_is_wrong_with_a_run},
    {0},
};

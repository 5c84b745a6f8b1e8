/* SPDX-License-Identifier: Apache-2.0 */
/* Every dialect of environment variables gives the right role. */
#include "cluster/role.h"

#include "base/test.h"

#include <stdio.h>
#include <string.h>

/* "A=1;B=x y": the variables of one process. */
static const char *from_text(void *user, const char *name)
{
    static char value[8][256]; /* the last eight results */
    static int next;
    const size_t n = strlen(name);
    for (const char *at = user; *at;) {
        const size_t len = strcspn(at, ";");
        if (!strncmp(at, name, n) && at[n] == '=') {
            char *out = value[next++ % 8];
            snprintf(out, sizeof value[0], "%.*s", (int)(len - n - 1),
                     at + n + 1);
            return out;
        }
        at += len + (at[len] == ';');
    }
    return NULL;
}

static const char *text_at(void *user, int i)
{
    const char *at = user;
    for (; i && *at; i--) {
        at += strcspn(at, ";");
        at += *at == ';';
    }
    return *at ? at : NULL;
}

static fl_err resolve(const char *env, const fl_role_args *args, fl_role *r)
{
    return fl_role_resolve(r, args, &(fl_env){from_text, text_at, (void *)env});
}

#define SEED2                                                                  \
    "PADDLE_PSERVER_IPS=ps0.paddlepaddle.com,ps1.paddlepaddle.com;"            \
    "PADDLE_TRAINERS=2;PADDLE_PSERVER_PORT=6174"
#define SEED2_TEXT                                                             \
    "trainers     2  (PADDLE_TRAINERS)\n"                                      \
    "servers      ps0.paddlepaddle.com:6174  (PADDLE_PSERVER_IPS and "         \
    "PADDLE_PSERVER_PORT)\n"                                                   \
    "             ps1.paddlepaddle.com:6174\n"
#define SEED3                                                                  \
    "PADDLE_PSERVER_ENDPOINTS=ps0.paddlepaddle.com:7164,"                      \
    "ps1.paddlepaddle.com:7164;TRAINERS=2"
#define SEED3_TEXT                                                             \
    "trainers     2  (TRAINERS)\n"                                             \
    "servers      ps0.paddlepaddle.com:7164  (PADDLE_PSERVER_ENDPOINTS)\n"     \
    "             ps1.paddlepaddle.com:7164\n"

static const struct {
    const char *env, *text;
} dialects[] = {
    /* Volcano: a server and a trainer */
    {"TRAINING_ROLE=PSERVER;VC_PS_HOSTS=j-ps-0.j,j-ps-1.j;VC_WORKER_NUM=3;"
     "VC_TASK_INDEX=1",
     "role         PSERVER  (TRAINING_ROLE)\n"
     "mode         pserver\n"
     "trainer_id   0  (default)\n"
     "trainers     3  (VC_WORKER_NUM)\n"
     "servers      j-ps-0.j:6174  (VC_PS_HOSTS)\n"
     "             j-ps-1.j:6174\n"
     "endpoint     j-ps-1.j:6174  (VC_TASK_INDEX)\n"},
    {"TRAINING_ROLE=TRAINER;VC_PSERVER_HOSTS=j-ps-0.j;VC_TRAINER_NUM=3;"
     "VC_TASK_INDEX=2;PADDLE_PORT=7000",
     "role         TRAINER  (TRAINING_ROLE)\n"
     "mode         pserver\n"
     "trainer_id   2  (VC_TASK_INDEX)\n"
     "trainers     3  (VC_TRAINER_NUM)\n"
     "servers      j-ps-0.j:7000  (VC_PSERVER_HOSTS and PADDLE_PORT)\n"},
    {"", "role         LOCAL  (default)\n"
         "mode         local\n"
         "trainer_id   0  (default)\n"
         "trainers     1  (default)\n"},
    /* fit a line in a bare cluster: server, then trainers */
    {"PSERVERS=192.168.1.2:6174;SERVER_ENDPOINT=192.168.1.2:6174;"
     "TRAINING_ROLE=PSERVER",
     "role         PSERVER  (TRAINING_ROLE)\n"
     "mode         pserver\n"
     "trainer_id   0  (default)\n"
     "trainers     1  (default)\n"
     "servers      192.168.1.2:6174  (PSERVERS)\n"
     "endpoint     192.168.1.2:6174  (SERVER_ENDPOINT)\n"},
    {"PSERVERS=192.168.1.2:6174;SERVER_ENDPOINT=192.168.1.2:6174;"
     "TRAINING_ROLE=TRAINER",
     "role         TRAINER  (TRAINING_ROLE)\n"
     "mode         pserver\n"
     "trainer_id   0  (default)\n"
     "trainers     1  (default)\n"
     "servers      192.168.1.2:6174  (PSERVERS)\n"},
    /* the cluster quick start, v0.14 and later */
    {SEED2 ";PADDLE_TRAINING_ROLE=PSERVER;"
           "PADDLE_CURRENT_IP=ps1.paddlepaddle.com",
     "role         PSERVER  (PADDLE_TRAINING_ROLE)\n"
     "mode         pserver\n"
     "trainer_id   0  (default)\n" SEED2_TEXT
     "endpoint     ps1.paddlepaddle.com:6174  (PADDLE_CURRENT_IP and "
     "PADDLE_PSERVER_PORT)\n"},
    {SEED2 ";PADDLE_TRAINING_ROLE=TRAINER;PADDLE_TRAINER_ID=1",
     "role         TRAINER  (PADDLE_TRAINING_ROLE)\n"
     "mode         pserver\n"
     "trainer_id   1  (PADDLE_TRAINER_ID)\n" SEED2_TEXT},
    /* the quick start in English; its first line lacks a port */
    {"PADDLE_TRAINING_ROLE=PSERVER;"
     "PADDLE_CURRENT_ENDPOINT=ps0.paddlepaddle.com:7164;"
     "PADDLE_PSERVER_ENDPOINTS=ps0.paddlepaddle.com:7164, "
     "ps1.paddlepaddle.com;TRAINERS=2",
     "role         PSERVER  (PADDLE_TRAINING_ROLE)\n"
     "mode         pserver\n"
     "trainer_id   0  (default)\n" SEED3_TEXT
     "endpoint     ps0.paddlepaddle.com:7164  (PADDLE_CURRENT_ENDPOINT)\n"
     "note: PADDLE_PSERVER_ENDPOINTS: \"ps1.paddlepaddle.com\" has no port, "
     "it gets 7164 as the others have\n"},
    {SEED3 ";PADDLE_TRAINING_ROLE=PSERVER;"
           "PADDLE_CURRENT_ENDPOINT=ps1.paddlepaddle.com:7164",
     "role         PSERVER  (PADDLE_TRAINING_ROLE)\n"
     "mode         pserver\n"
     "trainer_id   0  (default)\n" SEED3_TEXT
     "endpoint     ps1.paddlepaddle.com:7164  (PADDLE_CURRENT_ENDPOINT)\n"},
    {SEED3 ";PADDLE_TRAINING_ROLE=TRAINER;TRAINER_ID=1",
     "role         TRAINER  (PADDLE_TRAINING_ROLE)\n"
     "mode         pserver\n"
     "trainer_id   1  (TRAINER_ID)\n" SEED3_TEXT},
    /* trainers without servers */
    {"PADDLE_TRAINER_IPS=10.0.0.1,10.0.0.2;PADDLE_TRAINER_ID=1;"
     "PADDLE_PSERVER_PORT=7000;PADDLE_CURRENT_IP=10.0.0.2",
     "role         TRAINER  (PADDLE_TRAINER_IPS and PADDLE_PSERVER_PORT)\n"
     "mode         collective\n"
     "trainer_id   1  (PADDLE_TRAINER_ID)\n"
     "trainers     2  (PADDLE_TRAINER_IPS and PADDLE_PSERVER_PORT)\n"
     "peers        10.0.0.1:7000  (PADDLE_TRAINER_IPS and "
     "PADDLE_PSERVER_PORT)\n"
     "             10.0.0.2:7000\n"
     "endpoint     10.0.0.2:7000  (PADDLE_CURRENT_IP and "
     "PADDLE_PSERVER_PORT)\n"},
    {"PADDLE_TRAINER_ID=0;PADDLE_CURRENT_ENDPOINT=127.0.0.1:6170;"
     "PADDLE_TRAINERS_NUM=2;"
     "PADDLE_TRAINER_ENDPOINTS=127.0.0.1:6170,127.0.0.1:6171",
     "role         TRAINER  (PADDLE_TRAINER_ENDPOINTS)\n"
     "mode         collective\n"
     "trainer_id   0  (PADDLE_TRAINER_ID)\n"
     "trainers     2  (PADDLE_TRAINERS_NUM)\n"
     "peers        127.0.0.1:6170  (PADDLE_TRAINER_ENDPOINTS)\n"
     "             127.0.0.1:6171\n"
     "endpoint     127.0.0.1:6170  (PADDLE_CURRENT_ENDPOINT)\n"},
    /* under mpirun; a shell of an allocation is another job */
    {"PADDLE_TRAINER_ENDPOINTS=a:1,b:1;OMPI_COMM_WORLD_RANK=1;"
     "OMPI_COMM_WORLD_SIZE=2;SLURM_PROCID=0;SLURM_NTASKS=1",
     "role         TRAINER  (PADDLE_TRAINER_ENDPOINTS)\n"
     "mode         collective\n"
     "trainer_id   1  (OMPI_COMM_WORLD_RANK)\n"
     "trainers     2  (PADDLE_TRAINER_ENDPOINTS)\n"
     "peers        a:1  (PADDLE_TRAINER_ENDPOINTS)\n"
     "             b:1\n"
     "endpoint     b:1  (PADDLE_TRAINER_ENDPOINTS)\n"},
    {"PADDLE_TRAINER_ENDPOINTS=a:1,b:1;SLURM_PROCID=1;SLURM_NTASKS=2",
     "role         TRAINER  (PADDLE_TRAINER_ENDPOINTS)\n"
     "mode         collective\n"
     "trainer_id   1  (SLURM_PROCID)\n"
     "trainers     2  (PADDLE_TRAINER_ENDPOINTS)\n"
     "peers        a:1  (PADDLE_TRAINER_ENDPOINTS)\n"
     "             b:1\n"
     "endpoint     b:1  (PADDLE_TRAINER_ENDPOINTS)\n"},
    /* Fleet 1.5: one port for all */
    {"PADDLE_PORT=6174;PADDLE_PSERVERS=10.0.0.1,10.0.0.2;"
     "PADDLE_TRAINERS_NUM=2;POD_IP=10.0.0.2;TRAINING_ROLE=PSERVER",
     "role         PSERVER  (TRAINING_ROLE)\n"
     "mode         pserver\n"
     "trainer_id   0  (default)\n"
     "trainers     2  (PADDLE_TRAINERS_NUM)\n"
     "servers      10.0.0.1:6174  (PADDLE_PSERVERS and PADDLE_PORT)\n"
     "             10.0.0.2:6174\n"
     "endpoint     10.0.0.2:6174  (POD_IP and PADDLE_PORT)\n"},
    /* launch_ps 1.6: a port for each */
    {"PADDLE_TRAINERS_NUM=2;PADDLE_PORT=6170,6171;"
     "CURRENT_ENDPOINT=127.0.0.1:6171;PADDLE_PSERVERS=127.0.0.1,127.0.0.1;"
     "PADDLE_TRAINING_ROLE=PSERVER",
     "role         PSERVER  (PADDLE_TRAINING_ROLE)\n"
     "mode         pserver\n"
     "trainer_id   0  (default)\n"
     "trainers     2  (PADDLE_TRAINERS_NUM)\n"
     "servers      127.0.0.1:6170  (PADDLE_PSERVERS and PADDLE_PORT)\n"
     "             127.0.0.1:6171\n"
     "endpoint     127.0.0.1:6171  (CURRENT_ENDPOINT)\n"},
    /* launch_ps 1.7: PADDLE_PORT is that of this process */
    {"PADDLE_PSERVERS_IP_PORT_LIST=127.0.0.1:6170,127.0.0.1:6171;"
     "PADDLE_PORT=6171;TRAINING_ROLE=PSERVER;PADDLE_TRAINERS_NUM=2;"
     "POD_IP=127.0.0.1",
     "role         PSERVER  (TRAINING_ROLE)\n"
     "mode         pserver\n"
     "trainer_id   0  (default)\n"
     "trainers     2  (PADDLE_TRAINERS_NUM)\n"
     "servers      127.0.0.1:6170  (PADDLE_PSERVERS_IP_PORT_LIST)\n"
     "             127.0.0.1:6171\n"
     "endpoint     127.0.0.1:6171  (POD_IP and PADDLE_PORT)\n"},
    /* a port that is not the server's */
    {"PADDLE_PSERVERS_IP_PORT_LIST=10.0.0.1:6170,10.0.0.2:6170;"
     "PADDLE_PORT=6171;TRAINING_ROLE=PSERVER;PADDLE_TRAINERS_NUM=2;"
     "POD_IP=10.0.0.1",
     "role         PSERVER  (TRAINING_ROLE)\n"
     "mode         pserver\n"
     "trainer_id   0  (default)\n"
     "trainers     2  (PADDLE_TRAINERS_NUM)\n"
     "servers      10.0.0.1:6170  (PADDLE_PSERVERS_IP_PORT_LIST)\n"
     "             10.0.0.2:6170\n"
     "endpoint     10.0.0.1:6170  (POD_IP)\n"
     "note: PADDLE_PORT is 6171, but this server is 10.0.0.1:6170\n"},
    {"PADDLE_TRAINER_ENDPOINTS=10.0.0.1:6170,10.0.0.2:6170;PADDLE_PORT=6171;"
     "PADDLE_TRAINER_ID=0;POD_IP=10.0.0.1",
     "role         TRAINER  (PADDLE_TRAINER_ENDPOINTS)\n"
     "mode         collective\n"
     "trainer_id   0  (PADDLE_TRAINER_ID)\n"
     "trainers     2  (PADDLE_TRAINER_ENDPOINTS)\n"
     "peers        10.0.0.1:6170  (PADDLE_TRAINER_ENDPOINTS)\n"
     "             10.0.0.2:6170\n"
     "endpoint     10.0.0.1:6170  (POD_IP)\n"
     "note: PADDLE_PORT is 6171, but this trainer is 10.0.0.1:6170\n"},
    /* paddle.v2 */
    {"PADDLE_INIT_PORT=7164;PADDLE_INIT_NUM_GRADIENT_SERVERS=1;"
     "PADDLE_INIT_TRAINER_ID=0;PADDLE_INIT_PSERVERS=127.0.0.1",
     "role         TRAINER  (default)\n"
     "mode         pserver\n"
     "trainer_id   0  (PADDLE_INIT_TRAINER_ID)\n"
     "trainers     1  (PADDLE_INIT_NUM_GRADIENT_SERVERS)\n"
     "servers      127.0.0.1:7164  (PADDLE_INIT_PSERVERS and "
     "PADDLE_INIT_PORT)\n"
     "note: servers are named, but no role is set: this is a TRAINER\n"},
};

/* Cut the line of the level, which is the same in every dialect. */
static void cut_level(char *text)
{
    char *line = strstr(text, "durability ");
    if (line)
        memmove(line, strchr(line, '\n') + 1, strlen(strchr(line, '\n')));
}

static void every_dialect_is_understood(void)
{
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++) {
        fl_role r;
        CHECK_OK(resolve(dialects[i].env, NULL, &r));
        char *text = fl_role_text(&r);
        cut_level(text);
        CHECK_STR(text, dialects[i].text);
        fl_free(text);
        fl_role_fini(&r);
    }
}

static void arguments_win(void)
{
    const fl_role_args args = {.role = "pserver",
                               .endpoints = " a:1 , [::1]:2",
                               .endpoint = "[::1]:2",
                               .trainer_id = "3",
                               .trainers = "4"};
    fl_role r;
    CHECK_OK(resolve(SEED2 ";PADDLE_TRAINING_ROLE=TRAINER", &args, &r));
    CHECK_INT(r.duty, FL_DUTY_PSERVER);
    CHECK_INT(r.trainer_id, 3);
    CHECK_INT(r.trainers, 4);
    CHECK_INT(r.n_endpoints, 2);
    CHECK_STR(r.endpoints[0], "a:1");
    CHECK_STR(r.endpoint, "[::1]:2");
    CHECK_STR(r.source.duty, "argument role");
    fl_role_fini(&r);
}

/* A server need not be told which it is if there is only one. */
static void the_only_server_knows_itself(void)
{
    fl_role r;
    CHECK_OK(resolve("PADDLE_TRAINING_ROLE=PSERVER;"
                     "PADDLE_PSERVER_ENDPOINTS=a:1",
                     NULL, &r));
    CHECK_STR(r.endpoint, "a:1");
    fl_role_fini(&r);
}

/* Two variables with the same setting may be set. */
static void names_may_agree(void)
{
    fl_role r;
    CHECK_OK(resolve("TRAINING_ROLE=TRAINER;PADDLE_TRAINING_ROLE=trainer;"
                     "PSERVERS=a:1,b:2;PADDLE_PSERVER_ENDPOINTS=a:1, b:2,;"
                     "PADDLE_TRAINERS=2;TRAINERS=2",
                     NULL, &r));
    CHECK_INT(r.n_endpoints, 2);
    fl_role_fini(&r);
}

static void near_misses_are_noted(void)
{
    fl_role r;
    CHECK_OK(
        resolve(SEED2 ";PADDLE_TRAINER_ROLE=PSERVER;TRAINER_ID=1", NULL, &r));
    CHECK_INT(r.n_notes, 2);
    CHECK_STR(r.notes[0], "PADDLE_TRAINER_ROLE is set, but nothing reads it; "
                          "did you mean PADDLE_TRAINING_ROLE?");
    fl_role_fini(&r);
    CHECK_OK(resolve(SEED2 ";PADDLE_TRAINER_ROLE=x;PADDLE_TRAINING_ROLE="
                           "TRAINER;TRAINER_ID=1",
                     NULL, &r));
    CHECK_INT(r.n_notes, 0);
    fl_role_fini(&r);
}

static void an_id_that_is_missing_is_noted(void)
{
    fl_role r;
    CHECK_OK(resolve(SEED2 ";TRAINING_ROLE=TRAINER", NULL, &r));
    CHECK_INT(r.n_notes, 1);
    CHECK_STR(r.notes[0], "PADDLE_TRAINER_ID is not set: this is trainer 0 of "
                          "2");
    fl_role_fini(&r);
    CHECK_ERR(resolve(SEED2 ";TRAINING_ROLE=TRAINER;TRAINER_ID=-1", NULL, &r),
              FL_EINVAL, "TRAINER_ID is \"-1\"");
    CHECK_OK(resolve(SEED2 ";TRAINING_ROLE=PSERVER;TRAINER_ID=-1;"
                           "PADDLE_CURRENT_IP=ps1.paddlepaddle.com",
                     NULL, &r)); /* a server ignores it */
    CHECK_INT(r.n_notes, 0);
    fl_role_fini(&r);
}

static void a_number_of_trainers_that_is_missing_is_noted(void)
{
    fl_role r;
    CHECK_OK(resolve("PSERVERS=a:1;TRAINING_ROLE=TRAINER;PADDLE_TRAINER_ID=1",
                     NULL, &r));
    CHECK_INT(r.n_notes, 1);
    CHECK_STR(r.notes[0], "PADDLE_TRAINER_ID is 1, but PADDLE_TRAINERS_NUM is "
                          "not set: the job has more trainers than the default "
                          "of 1");
    fl_role_fini(&r);
}

static void slips_are_noted(void)
{
    static const struct {
        const char *wrong, *right; /* right NULL: not a misspelling */
    } rows[] = {
        {"PADDLE_TRANING_ROLE", "PADDLE_TRAINING_ROLE"},
        {"PADDLE_TRAINER_IDS", "PADDLE_TRAINER_ID"},
        {"PADDLE_TRIANERS", "PADDLE_TRAINERS"},
        {"PADDLE_TRAINER_NUM", "PADDLE_TRAINERS_NUM"},
        {"PADDLE_PSERVER_IP", "PADDLE_PSERVER_IPS"},
        {"PADDLE_PSERVERS_PORT", "PADDLE_PSERVER_PORT"},
        {"PADDLE_CURRENT_ENDPOINTS", "PADDLE_CURRENT_ENDPOINT"},
        {"TRIANERS", "TRAINERS"},
        {"TRANING_ROLE", "TRAINING_ROLE"},
        {"TRAINNIG_ROLE", "TRAINING_ROLE"},
        {"TRANER_ID", NULL}, /* too short */
        {"TRIANER_ID", "TRAINER_ID"},
        {"CURENT_ENDPOINT", "CURRENT_ENDPOINT"},
        {"SEVER_ENDPOINT", "SERVER_ENDPOINT"},
        {"PADLE_TRAINER_ID", "PADDLE_TRAINER_ID"},
        {"FLIUD_LEASE", "FLUID_LEASE"},
        {"TRAINER_IP", NULL}, /* probably other things */
        {"SERVER_ENDPOINTS", NULL},
        {"TRAINING_MODE", NULL},
        {"VC_TRAINERS_NUM", NULL},
        {"TRAINER", NULL},
        {"PSERVER", NULL},
        {"POD_IPS", NULL},
        {"HOSTS", NULL},
        {"PADDLE_ROOT", NULL},
        {"PADDLE_PYTHON", NULL},
        {"PADDLE_TRAINER_NAME", NULL},
        {"PADDLE_", NULL},
        {"FLUID_STAGE", "FLUID_STAGED"},
        {"FLUID_LAESE", "FLUID_LEASE"},
        {"FLUID_TRUST_PROGRAM", "FLUID_TRUST_PROGRAMS"},
        {"FLUID_JOB", NULL}, /* set by the launcher, not by users */
        {"FLUID_RESTARTS", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char env[64], note[160];
        fl_role r;
        snprintf(env, sizeof env, "%s=1", rows[i].wrong);
        snprintf(note, sizeof note,
                 "%s is set, but nothing reads it; did you mean %s?",
                 rows[i].wrong, rows[i].right ? rows[i].right : "");
        CHECK_OK(resolve(env, NULL, &r));
        CHECK_INT(r.n_notes, rows[i].right ? 1 : 0);
        if (r.n_notes)
            CHECK_STR(r.notes[0], note);
        fl_role_fini(&r);
    }
}

static void the_level_of_durability_is_shown(void)
{
    static const struct {
        const char *set, *row;
    } rows[] = {
        {"", "durability   process if there is room  (default)\n"},
        {";FLUID_DURABILITY=memory",
         "durability   memory  (FLUID_DURABILITY)\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_role r;
        char env[128];
        snprintf(env, sizeof env,
                 "PADDLE_TRAINING_ROLE=PSERVER;PADDLE_PSERVER_ENDPOINTS=a:1%s",
                 rows[i].set);
        CHECK_OK(resolve(env, NULL, &r));
        char *text = fl_role_text(&r);
        CHECK(strstr(text, rows[i].row) != NULL);
        fl_free(text);
        fl_role_fini(&r);
    }
}

static void settings_are_shown(void)
{
    fl_role r;
    CHECK_OK(resolve("FLUID_STAGED=1e9;FLUID_LEASE= 5 ;FLUID_START=;"
                     "FLUID_LAUNCHED=1",
                     NULL, &r));
    char *text = fl_role_text(&r);
    CHECK_STR(strstr(text, "settings"), "settings     FLUID_LEASE=5\n"
                                        "             FLUID_STAGED=1e9\n");
    fl_free(text);
    fl_role_fini(&r);
}

static void a_failure_tells_of_the_slip(void)
{
    fl_role r;
    CHECK_ERR(
        resolve("TRAINING_ROLE=TRAINER;PADDLE_PSERVER_ENDPOINT=a:1", NULL, &r),
        FL_EINVAL,
        "TRAINING_ROLE is TRAINER, but no servers are named; set "
        "PADDLE_PSERVER_ENDPOINTS=host:port,host:port "
        "(PADDLE_PSERVER_ENDPOINT is set, but nothing reads it; did you "
        "mean PADDLE_PSERVER_ENDPOINTS?)");
}

static const struct {
    const char *env, *says;
} faults[] = {
    {"TRAINING_ROLE=TRAINER;PADDLE_TRAINING_ROLE=PSERVER;PSERVERS=a:1",
     "TRAINING_ROLE is \"TRAINER\", but PADDLE_TRAINING_ROLE is \"PSERVER\""},
    {"PADDLE_TRAINERS=2;TRAINERS=3",
     "PADDLE_TRAINERS is \"2\", but TRAINERS is \"3\""},
    {"PSERVERS=a:1;PADDLE_PSERVER_ENDPOINTS=a:2;TRAINING_ROLE=TRAINER",
     "PADDLE_PSERVER_ENDPOINTS is \"a:2\", but PSERVERS is \"a:1\""},
    {"TRAINING_ROLE=WORKER;PSERVERS=a:1",
     "TRAINING_ROLE is \"WORKER\", expected TRAINER or PSERVER"},
    {"TRAINING_ROLE=WORKER",
     "TRAINING_ROLE is \"WORKER\", expected TRAINER or PSERVER"},
    {"PADDLE_TRAINING_ROLE=TRAINER",
     "PADDLE_TRAINING_ROLE is TRAINER, but no servers are named; set "
     "PADDLE_PSERVER_ENDPOINTS=host:port,host:port"},
    {"PADDLE_TRAINING_ROLE=TRAINER;PADDLE_PSERVER_PORT=6174",
     "PADDLE_TRAINING_ROLE is TRAINER and PADDLE_PSERVER_PORT is 6174, but no "
     "servers are named; set PADDLE_PSERVER_IPS=host,host"},
    {"PADDLE_TRAINING_ROLE=PSERVER;PSERVERS=a:1,b:2",
     "this PSERVER does not know which of a:1, b:2 it is; set "
     "PADDLE_CURRENT_ENDPOINT"},
    {"PADDLE_TRAINING_ROLE=PSERVER;PSERVERS=a:1;SERVER_ENDPOINT=c:1",
     "SERVER_ENDPOINT is \"c:1\", which is not one of a:1"},
    {"PADDLE_TRAINING_ROLE=PSERVER;PADDLE_PSERVER_IPS=a,b;"
     "PADDLE_CURRENT_IP=c;PADDLE_PSERVER_PORT=1",
     "PADDLE_CURRENT_IP is \"c\", which is not one of a:1, b:1"},
    {"PADDLE_TRAINING_ROLE=PSERVER;PSERVERS=a:1,a:2;POD_IP=a;PADDLE_PORT=3",
     "POD_IP is \"a\" and PADDLE_PORT is 3, but a:3 is not one of a:1, a:2"},
    {"PADDLE_TRAINING_ROLE=PSERVER;PADDLE_PSERVER_IPS=a,a;"
     "PADDLE_PSERVER_PORT=1,2;PADDLE_CURRENT_IP=a",
     "PADDLE_CURRENT_IP is \"a\", the host of more than one of a:1, a:2; set "
     "PADDLE_CURRENT_ENDPOINT"},
    {"PADDLE_TRAINING_ROLE=PSERVER;PSERVERS=a:1,a:2;POD_IP=a",
     "POD_IP is \"a\", the host of more than one of a:1, a:2; set "
     "PADDLE_CURRENT_ENDPOINT"},
    {SEED2 ";PADDLE_TRAINER_ID=2;PADDLE_TRAINING_ROLE=TRAINER",
     "PADDLE_TRAINER_ID is 2, but PADDLE_TRAINERS is 2: ids go from 0 to 1"},
    {"PADDLE_TRAINER_ID=one", "PADDLE_TRAINER_ID is \"one\", expected a whole "
                              "number"},
    {"PADDLE_TRAINERS=0", "PADDLE_TRAINERS is 0, expected 1 or more"},
    {"PSERVERS=a,b", "PSERVERS: \"a\" has no port, expected host:port"},
    {"PSERVERS=a:1,b:2,c", "PSERVERS: \"c\" has no port, expected host:port"},
    {"PSERVERS=a:1,a:1", "PSERVERS: a:1 is listed twice"},
    {"PSERVERS=a:70000", "PSERVERS: \"a:70000\" has the port \"70000\", "
                         "expected a number from 1 to 65535"},
    {"PADDLE_PSERVER_IPS=a;PADDLE_PSERVER_PORT=0",
     "PADDLE_PSERVER_IPS and PADDLE_PSERVER_PORT: \"a:0\" has the port \"0\""},
    {"PADDLE_PSERVER_IPS=a;PADDLE_PSERVER_PORT=http",
     "\"a:http\" has the port \"http\", expected a number from 1 to 65535"},
    {"PSERVERS=a:1,:1", "PSERVERS: \":1\" has no host, expected host:port"},
    {"PADDLE_TRAINERS=-3", "PADDLE_TRAINERS is \"-3\", expected a whole "
                           "number"},
    {"PADDLE_PSERVERS=a,b,c;PADDLE_PORT=1,2",
     "PADDLE_PORT has 2 ports, but PADDLE_PSERVERS has 3 hosts"},
    {"PADDLE_TRAINER_IPS=a,b;PADDLE_PSERVER_IPS=c",
     "PADDLE_PSERVER_IPS names servers, but PADDLE_TRAINER_IPS trainers "
     "without servers: unset one of them"},
    {"PADDLE_TRAINER_ENDPOINTS=a:1,b:1;PADDLE_TRAINERS_NUM=3",
     "PADDLE_TRAINERS_NUM is 3, but PADDLE_TRAINER_ENDPOINTS names 2 "
     "trainers"},
    {"PADDLE_TRAINER_ENDPOINTS=a:1,b:1;PADDLE_TRAINER_ID=1;"
     "PADDLE_CURRENT_ENDPOINT=a:1",
     "PADDLE_TRAINER_ID is 1, which is b:1, but PADDLE_CURRENT_ENDPOINT is "
     "a:1"},
};

static void contradictions_get_a_sentence(void)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        fl_role r;
        CHECK_ERR(resolve(faults[i].env, NULL, &r), FL_EINVAL, faults[i].says);
        CHECK(!r.arena);
    }
}

const fl_test fl_tests[] = {
    {"a role understands every dialect", every_dialect_is_understood},
    {"a role's arguments win", arguments_win},
    {"a role is clear for the only server", the_only_server_knows_itself},
    {"a role may be said twice", names_may_agree},
    {"a role notes an id that is missing", an_id_that_is_missing_is_noted},
    {"a role notes a number of trainers that is missing",
     a_number_of_trainers_that_is_missing_is_noted},
    {"a role notes near misses", near_misses_are_noted},
    {"a role notes misspelt variables", slips_are_noted},
    {"a role shows the settings of its process", settings_are_shown},
    {"the level of durability is shown", the_level_of_durability_is_shown},
    {"a role that fails tells of a misspelt variable",
     a_failure_tells_of_the_slip},
    {"a role that contradicts itself gets a sentence",
     contradictions_get_a_sentence},
    {0},
};

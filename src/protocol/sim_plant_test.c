/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator finds deliberate bugs: the state machines of this test are
 * compiled with them (plant.h). */
#include "protocol/plant.h"
#include "protocol/sim.h"

#include "base/test.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
    FEW = 3000
};

fl_plant fl_planted;

/* Some seed finds the planted bug, by one of the letters. */
static void finds_in(fl_plant plant, const char *letters, bool async)
{
    fl_sim_opts opts = {.sync = !async, .async = async};
    fl_sim_result r;
    fl_str report = {0};
    fl_planted = plant;
    for (opts.seed = 1; opts.seed <= FEW; opts.seed++) {
        if (fl_sim_run(&opts, &r, &report))
            continue;
        const char *letter = strstr(report.at, " breaks ") + 8;
        const bool found = strchr(letters, *letter);
        fl_str_fini(&report);
        if (found)
            return;
    }
    CHECK(!"the planted bug was found");
}

static void finds(fl_plant plant, const char *letters)
{
    finds_in(plant, letters, false);
}

static void finds_a_duplicate(void)
{
    finds(FL_PLANT_DUPLICATE, "A");
}

static void finds_a_dead_member(void)
{
    finds(FL_PLANT_DEAD_MEMBER, "E");
}

static void finds_reduction_by_arrival(void)
{
    finds(FL_PLANT_ARRIVAL, "C");
}

static void finds_a_loss_that_goes_unnoticed(void)
{
    finds(FL_PLANT_QUIET, "Q");
}

static void finds_winfirst(void)
{
    finds(FL_PLANT_WINFIRST, "AFG");
}

static void finds_ackearly(void)
{
    finds(FL_PLANT_ACKEARLY, "AFG");
}

static void finds_verfirst(void)
{
    finds(FL_PLANT_VERFIRST, "ABCDFG");
}

static void finds_noremark(void)
{
    finds(FL_PLANT_NOREMARK, "AFG");
}

static void finds_staleview(void)
{
    finds(FL_PLANT_STALEVIEW, "ABDFG");
}

static void finds_forgetgrant(void)
{
    finds(FL_PLANT_FORGETGRANT, "BEFG");
}

static void finds_barrierack(void)
{
    finds(FL_PLANT_BARRIERACK, "FBDEG");
}

static void finds_decideforget(void)
{
    finds(FL_PLANT_DECIDEFORGET, "BDFEG");
}

static void finds_doneforget(void)
{
    finds(FL_PLANT_DONEFORGET, "BFEG");
}

static void finds_endforget(void)
{
    finds(FL_PLANT_ENDFORGET, "FGB");
}

static void finds_leaveearly(void)
{
    finds(FL_PLANT_LEAVEEARLY, "F");
}

static void finds_posearly(void)
{
    finds(FL_PLANT_POSEARLY, "X");
}

static void finds_poslost(void)
{
    finds(FL_PLANT_POSLOST, "X");
}

static void finds_steptwice(void)
{
    finds_in(FL_PLANT_STEPTWICE, "X", true);
}

static void finds_staleclose(void)
{
    finds(FL_PLANT_STALECLOSE, "ABCD");
}

static void finds_viewgen(void)
{
    finds(FL_PLANT_VIEWGEN, "D");
}

static void finds_damaged(void)
{
    finds(FL_PLANT_DAMAGED, "F");
}

static void finds_otherrun(void)
{
    finds(FL_PLANT_OTHERRUN, "Q");
}

const fl_test fl_tests[] = {
    {"the simulator finds a push applied twice", finds_a_duplicate},
    {"the simulator finds a dead member that counts", finds_a_dead_member},
    {"the simulator finds reduction by arrival", finds_reduction_by_arrival},
    {"the simulator finds a loss that goes unnoticed",
     finds_a_loss_that_goes_unnoticed},
    {"the simulator finds a push marked before it is kept", finds_winfirst},
    {"the simulator finds a push acknowledged before it is kept",
     finds_ackearly},
    {"the simulator finds a version kept before its round", finds_verfirst},
    {"the simulator finds kept pushes that are not marked", finds_noremark},
    {"the simulator finds a view that is not kept", finds_staleview},
    {"the simulator finds a grant that is not kept", finds_forgetgrant},
    {"the simulator finds a barrier that is not kept", finds_barrierack},
    {"the simulator finds a decision that is not kept", finds_decideforget},
    {"the simulator finds a completion that is not kept", finds_doneforget},
    {"the simulator finds an end that is not kept", finds_endforget},
    {"the simulator finds a server that leaves too early", finds_leaveearly},
    {"the simulator finds a batch that counts before its round",
     finds_posearly},
    {"the simulator finds positions that are not kept", finds_poslost},
    {"the simulator finds an asynchronous batch that counts twice",
     finds_steptwice},
    {"the simulator finds a decision of an older generation that is taken",
     finds_staleclose},
    {"the simulator finds a view that is taken before the values are restored",
     finds_viewgen},
    {"the simulator finds a damaged snapshot that the job waits for",
     finds_damaged},
    {"the simulator finds a snapshot of another run that is restored",
     finds_otherrun},
    {0},
};

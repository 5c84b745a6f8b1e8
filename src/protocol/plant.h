/* SPDX-License-Identifier: Apache-2.0 */
/* plant.h - deliberate bugs. A test shows that the simulator finds each of
 * them.
 *
 * Only src/protocol/sim_plant_test.c is linked with machines that were compiled
 * with FL_WITH_PLANTS. In the library FL_PLANTED is false, and the compiler
 * removes what depends on it. */
#ifndef FL_PROTOCOL_PLANT_H
#define FL_PROTOCOL_PLANT_H

typedef enum fl_plant {
    FL_PLANT_NONE,
    FL_PLANT_DUPLICATE,   /* a server forgets which pushes it has seen */
    FL_PLANT_DEAD_MEMBER, /* a lost trainer's barrier still counts */
    FL_PLANT_ARRIVAL,     /* gradients are added as they came, not by rank */
    FL_PLANT_QUIET,       /* lost state is not noticed: no party compares state
                             ids and versions */
    /* these show after a restart with the kept state */
    FL_PLANT_WINFIRST,     /* a push is marked as seen before it is staged */
    FL_PLANT_ACKEARLY,     /* a push is acknowledged before it is staged */
    FL_PLANT_VERFIRST,     /* a version is kept before its round is applied */
    FL_PLANT_NOREMARK,     /* kept pushes are not marked as seen */
    FL_PLANT_STALEVIEW,    /* a server does not keep its view */
    FL_PLANT_FORGETGRANT,  /* GRANT leaves before its image is saved */
    FL_PLANT_BARRIERACK,   /* ACK of BARRIER leaves before its image is saved */
    FL_PLANT_DECIDEFORGET, /* CLOSE leaves before its image is saved */
    FL_PLANT_DONEFORGET, /* ACK of COMPLETE leaves before its image is saved */
    FL_PLANT_ENDFORGET,  /* END leaves before its image is saved */
    FL_PLANT_LEAVEEARLY, /* a server leaves before the coordinator knows that
                            it has ended */
    FL_PLANT_POSEARLY,   /* a step counts before its round is decided */
    FL_PLANT_STEPTWICE,  /* a server forgets the steps of earlier sessions */
    FL_PLANT_POSLOST,    /* the image has no positions */
    /* these show after the job has gone back to a snapshot */
    FL_PLANT_STALECLOSE, /* a server obeys messages of an older generation */
    FL_PLANT_VIEWGEN,    /* a server takes views of the next generation before
                            it has gone back */
    FL_PLANT_DAMAGED,    /* the coordinator ignores that a server cannot restore
                            its snapshot */
    FL_PLANT_OTHERRUN,   /* the job goes back to a snapshot of another run */
} fl_plant;

#ifdef FL_WITH_PLANTS
extern fl_plant fl_planted; /* the bug that the test has chosen */
#define FL_PLANTED(bug) (fl_planted == FL_PLANT_##bug)
#else
#define FL_PLANTED(bug) false
#endif

#endif

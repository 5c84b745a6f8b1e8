/* SPDX-License-Identifier: Apache-2.0 */
/* plant.h - bugs on purpose, for the test that shows the simulator of ranks
 * finding them.
 *
 * Only src/collective/sim_plant_test.c is linked with code that was compiled
 * with FL_WITH_PLANTS. In the library FL_PLANTED is false, and the compiler
 * removes what depends on it. */
#ifndef FL_NET_PLANT_H
#define FL_NET_PLANT_H

typedef enum fl_net_plant {
    FL_NET_PLANT_NONE,
    FL_NET_PLANT_MUTE,        /* a rank that fails does not tell the others */
    FL_NET_PLANT_HASTY,       /* a lost connection is blamed at once */
    FL_NET_PLANT_STALE,       /* a wait for the next rank is not told */
    FL_NET_PLANT_NO_FAREWELL, /* a rank leaves without a word */
    FL_NET_PLANT_ANY_CALL,    /* nobody compares which call a rank is in */
    FL_NET_PLANT_BUCKETS,     /* odd ranks have smaller buckets */
} fl_net_plant;

#ifdef FL_WITH_PLANTS
extern fl_net_plant fl_net_planted; /* the bug that the test has chosen */
#define FL_PLANTED(bug) (fl_net_planted == FL_NET_PLANT_##bug)
#else
#define FL_PLANTED(bug) false
#endif

#endif

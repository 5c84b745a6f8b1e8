/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_test.c - the same hostile programs in every run of the tests; make
 * fuzz looks for others. FL_HOSTILE=SEED runs the program of one seed. */
#include "base/random.h"
#include "check/check.h"
#include "check/hostile.h"
#include "ops/ops.h"

#include <stdlib.h>

enum {
    PROGRAMS = 30000,
    WORDS = 96, /* of 8 bytes, for the choices of one program */
};

static fl_hostile_result run_seed(const fl_registry *r, uint64_t seed)
{
    uint64_t word[WORDS];
    fl_entropy e = fl_entropy_fake(seed << 32);
    for (int i = 0; i < WORDS; i++)
        word[i] = e.draw(&e);
    return fl_hostile_run(r, (const uint8_t *)word, sizeof word);
}

static void no_program_breaks_an_operator(void)
{
    const char *one = getenv("FL_HOSTILE");
    fl_registry *r;
    int ran = 0, grads = 0;
    CHECK_OK(fl_registry_new(fl_ops_table, fl_ops_count, &r));
    for (uint64_t seed = 1; !one && seed <= PROGRAMS; seed++) {
        const fl_hostile_result out = run_seed(r, seed);
        ran += out.ran;
        grads += out.grad_ran;
    }
    if (one)
        run_seed(r, strtoull(one, NULL, 10));
    fl_registry_free(r);
    CHECK(one || ran > PROGRAMS / 6); /* else the rules refused everything */
    CHECK(one || grads > PROGRAMS / 20);
}

const fl_test fl_tests[] = {
    {"no program breaks an operator", no_program_breaks_an_operator},
    {0},
};

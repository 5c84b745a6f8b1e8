/* SPDX-License-Identifier: Apache-2.0 */
/* shuffle.c - the Mersenne twister MT19937 and numpy's use of it. */
#include "base/shuffle.h"

enum {
    WORDS = 624,
    FAR = 397,
};

typedef struct twister {
    uint32_t x[WORDS];
    int at;
} twister;

static void seed_twister(twister *t, uint32_t seed)
{
    t->x[0] = seed;
    for (uint32_t i = 1; i < WORDS; i++)
        t->x[i] = 1812433253u * (t->x[i - 1] ^ t->x[i - 1] >> 30) + i;
    t->at = WORDS;
}

static void turn_twister(twister *t)
{
    for (int i = 0; i < WORDS; i++) {
        uint32_t y =
            (t->x[i] & 0x80000000u) | (t->x[(i + 1) % WORDS] & 0x7fffffffu);
        t->x[i] = t->x[(i + FAR) % WORDS] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    t->at = 0;
}

static uint32_t next_number(twister *t)
{
    if (t->at == WORDS)
        turn_twister(t);
    uint32_t y = t->x[t->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* A random number from 0 to most. Larger numbers are drawn again. */
static uint32_t draw_below(twister *t, uint32_t most)
{
    uint32_t mask = most, x;
    for (int i = 1; i < 32; i *= 2)
        mask |= mask >> i;
    do
        x = next_number(t) & mask;
    while (x > most);
    return x;
}

void fl_shuffle(uint32_t seed, int n, int *out)
{
    twister t;
    seed_twister(&t, seed);
    for (int i = 0; i < n; i++)
        out[i] = i;
    for (int i = n - 1; i > 0; i--) {
        const uint32_t j = draw_below(&t, (uint32_t)i);
        const int swapped = out[i];
        out[i] = out[j];
        out[j] = swapped;
    }
}

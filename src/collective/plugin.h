/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.h - the interface of a library that replaces our ring for collective
 * calls.
 *
 * The library exports one variable, fl_collective_plugin. This header
 * includes no other header of Fluid, so that a plug-in needs only this one.
 * Calls mean what net/ring.h says. A call returns 0, or another number and an
 * error message in `why`, which has FL_PLUGIN_WHY bytes. Thread: one at a time,
 * not always the same. */
#ifndef FL_COLLECTIVE_PLUGIN_H
#define FL_COLLECTIVE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

enum {
    FL_PLUGIN_ABI = 1, /* version of the struct below */
    FL_PLUGIN_WHY = 300,
};

typedef enum fl_plugin_type {
    FL_PLUGIN_F32,
    FL_PLUGIN_F64,
    FL_PLUGIN_I32,
    FL_PLUGIN_I64,
} fl_plugin_type;

typedef enum fl_plugin_reduce {
    FL_PLUGIN_SUM,
    FL_PLUGIN_MAX,
    FL_PLUGIN_MIN,
    FL_PLUGIN_PROD,
} fl_plugin_reduce;

typedef struct fl_plugin {
    int abi; /* FL_PLUGIN_ABI */
    const char *name;
    /* *local becomes the number of ranks on this host. */
    int (*join)(int rank, int ranks, void **self, int *local, char *why);
    int (*all_reduce)(void *self, fl_plugin_reduce how, fl_plugin_type type,
                      void *x, int64_t n, char *why);
    int (*reduce_scatter)(void *self, fl_plugin_reduce how, fl_plugin_type type,
                          void *x, int64_t n, char *why);
    int (*all_gather)(void *self, void *x, const size_t *at, char *why);
    int (*broadcast)(void *self, int root, void *x, size_t size, char *why);
    int (*barrier)(void *self, char *why);
    void (*fail)(void *self, const char *why); /* ends all ranks */
    void (*leave)(void *self);
} fl_plugin;

#define FL_PLUGIN_SYMBOL "fl_collective_plugin"

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* paddle version - what this is and what it was built with. */
#include "cli/cli.h"

#include <stdio.h>

static const struct {
    const char *name;
    bool on;
} built_with[] = {
#ifdef __x86_64__
    {"with_avx", true}, /* kernels have AVX2 and AVX-512 versions */
#else
    {"with_avx", false},
#endif
    {"with_gpu", false},
    {"with_double", false}, /* f32 unless a program says f64 */
#ifdef FL_WITH_PYTHON
    {"with_python", true},
#else
    {"with_python", false},
#endif
    {"with_rdma", false},
    {"with_timer", false},
};

static int run_version(int n, char **arg)
{
    printf("Fluid %s, compiled with\n", fl_version());
    for (size_t i = 0; i < sizeof built_with / sizeof *built_with; i++)
        printf("    %s: %s\n", built_with[i].name,
               built_with[i].on ? "ON" : "OFF");
    return FL_EXIT_OK;
}

const fl_cmd fl_cmd_version = {
    .name = "version",
    .group = FL_CMD_ABOUT,
    .help = "show the version and what it was built with",
    .run = run_version,
};

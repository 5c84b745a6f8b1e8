/* SPDX-License-Identifier: Apache-2.0 */
/* clones.h - functions compiled for several kinds of processor.
 *
 * The compiler makes one version of the function per kind, and the loader
 * picks one when the library is loaded. Off under sanitizers, which do not
 * support it, and with clang, whose versions of other files do not link (seen
 * with clang 14): such a build runs the baseline code everywhere. */
#ifndef FL_BASE_CLONES_H
#define FL_BASE_CLONES_H

#if defined(__x86_64__) && !defined(__clang__) && !defined(FL_NO_CLONES)
#define FL_CLONES                                                              \
    __attribute__((                                                            \
        target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FL_CLONES
#endif

#endif

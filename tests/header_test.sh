#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fluid.h keeps what it says of itself.
. tests/scene.sh
strict='-fsyntax-only -Wall -Wextra -pedantic -Werror'

compiles_as_c11() { gcc -std=c11 $strict -x c include/fluid.h; }

compiles_as_cxx() { g++ -std=c++11 $strict -x c++ include/fluid.h; }

names() { # of functions that the header declares, and one of OpenSSL's
    scripts/exports include/fluid.h | grep -o 'fl_[a-z0-9_]*\|SSL_CTX_new' | sort
}

declared_is_exported_and_no_more() {
    names >"$dir/declared"
    nm -D --defined-only "$build/lib/libfluid.so" |
        sed -n 's/.* [A-Z] \([A-Za-z][A-Za-z0-9_]*\)@.*/\1/p' | sort >"$dir/exported"
    diff "$dir/declared" "$dir/exported"
}

# The indented lines of the head comment, from its first #include on.
example() {
    sed -e 1d -e '/\*\//q' include/fluid.h | awk '
        !on && /^ \* +#include/ { on = 1; in_by = index($0, "#") - 1 }
        on && /^ \* ? ? ?[^ ]/ { exit }
        on { print substr($0, in_by + 1) }'
}

its_program_runs() {
    example >"$dir/example.c"
    test -s "$dir/example.c"
    runs "$dir/example.c"
}

it "fluid.h compiles as pedantic C11" compiles_as_c11
it "fluid.h compiles as pedantic C++" compiles_as_cxx
it "the library exports what fluid.h declares" declared_is_exported_and_no_more
it "the program in fluid.h compiles and runs" its_program_runs

#!/bin/sh
# fluid.h keeps what it says of itself.
. tests/scene.sh
strict='-fsyntax-only -Wall -Wextra -pedantic -Werror'

compiles_as_c11() { gcc -std=c11 $strict -x c include/fluid.h; }

compiles_as_cxx() { g++ -std=c++11 $strict -x c++ include/fluid.h; }

names() { # of functions that the header declares
    scripts/exports include/fluid.h | grep -o 'fl_[a-z0-9_]*' | sort
}

declared_is_exported_and_no_more() {
    test -d src/api || skip "not all that fluid.h declares is there yet"
    names >"$dir/declared"
    nm -D --defined-only "$build/lib/libfluid.so" |
        sed -n 's/.* [A-Z] \([a-z][a-z0-9_]*\)@.*/\1/p' | sort >"$dir/exported"
    diff "$dir/declared" "$dir/exported"
}

# The indented lines of the head comment, from the first #include on.
example() {
    sed '/\*\//q' include/fluid.h |
        sed -n '/^ \*    *#include/,/^ \*    }/p' | sed 's/^ \* \{0,4\}//'
}

its_program_runs() {
    example >"$dir/example.c"
    test -s "$dir/example.c" || skip "fluid.h has no program yet"
    gcc -std=c11 -Wall -Wextra -Werror -Iinclude "$dir/example.c" \
        -L"$build/lib" -lfluid -o "$dir/example"
    (cd "$dir" && LD_LIBRARY_PATH=$(realpath "$OLDPWD/$build/lib") ./example)
}

it "fluid.h compiles as pedantic C11" compiles_as_c11
it "fluid.h compiles as pedantic C++" compiles_as_cxx
it "the library exports what fluid.h declares" declared_is_exported_and_no_more
it "the program in fluid.h compiles and runs" its_program_runs

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The layering and the rules hold, and the checks see what breaks them.
. tests/scene.sh

plant() { # path, line: a tree with that file and our LAYERS
    rm -rf "$dir/tree"
    mkdir -p "$dir/tree/src/$(dirname "$1")"
    mkdir "$dir/tree/docs"
    cp src/LAYERS "$dir/tree/src"
    cp docs/words.md "$dir/tree/docs"
    printf '/* SPDX-License-Identifier: Apache-2.0 */\n%s\n' "$2" \
        >"$dir/tree/src/$1"
}

the_tree_keeps_its_layers() { scripts/layers; }

the_tree_keeps_its_rules() { scripts/rules . "$build"; }

an_upward_include_is_refused() {
    plant tensor/planted.c '#include "graph/program.h"'
    refused scripts/layers "$dir/tree"
    says 'src/tensor/planted.c:2: tensor/ may not include "graph/program.h"'
}

kernels_and_programs_do_not_meet() {
    plant ops/planted.c '#include "graph/program.h"'
    refused scripts/layers "$dir/tree"
    says 'src/ops/planted.c:2: ops/ may not'
    plant graph/planted.h '#include "ops/ops.h"'
    refused scripts/layers "$dir/tree"
    says 'src/graph/planted.h:2: graph/ may not'
}

the_command_sees_fluid_h_only() {
    plant cli/planted.c '#include "base/mem.h"'
    refused scripts/layers "$dir/tree"
    says 'it may see: fluid.h only'
}

a_folder_without_a_line_is_refused() {
    plant cellar/planted.c '#include "base/mem.h"'
    refused scripts/layers "$dir/tree"
    says 'cellar/ has no line in src/LAYERS'
}

a_test_may_use_the_check_harness() {
    plant op/planted_test.c '#include "check/check.h"'
    scripts/layers "$dir/tree"
}

rule() { # path, line of C, words
    plant "$1" "$2"
    refused scripts/rules "$dir/tree"
    says "src/$1:2: $3"
}

calls_outside_their_home_are_refused() {
    rule ops/planted.c 'void *f(void) { return malloc(8); }' 'malloc('
    rule exec/planted.c 'int f(void) { return pthread_create(); }' 'pthread_cr'
    rule graph/planted.c 'char *f(void) { return getenv("X"); }' 'getenv('
    rule build/planted.c 'void f(void) { printf("x"); }' 'printf('
    rule tensor/planted.c 'void f(void) { fputs("x", stdout); }' 'stdout'
}

words_in_comments_and_texts_are_not_calls() {
    plant ops/planted.c 'const char *s = "malloc(8)"; /* getenv("X") */'
    scripts/rules "$dir/tree"
}

a_mutable_global_is_refused() {
    mkdir -p "$dir/tree/lib"
    echo 'static int seen; int f(void); int f(void) { return seen++; }' |
        gcc -c -x c - -o "$dir/planted.o"
    ar rcs "$dir/tree/lib/libfluid.a" "$dir/planted.o"
    refused scripts/rules . "$dir/tree"
    says 'planted.o: seen: no mutable globals'
}

it "the tree keeps its layers" the_tree_keeps_its_layers
a_bare_verb_is_refused() {
    plant exec/planted.c 'static int run(int n) { return n; }'
    refused scripts/rules "$dir/tree"
    says 'src/exec/planted.c:2: run: say what it is that it does that to'
}

a_type_has_one_header_and_a_word() {
    plant wire/planted.h 'typedef struct fl_planted fl_planted;'
    refused scripts/rules "$dir/tree"
    says 'src/wire/planted.h: fl_planted has no row in docs/words.md'
    cp "$dir/tree/src/wire/planted.h" "$dir/tree/src/wire/second.h"
    refused scripts/rules "$dir/tree"
    says 'src/wire/second.h: fl_planted is also in src/wire/planted.h'
}

a_file_names_its_licence() {
    plant exec/planted.c 'int planted;'
    sed -i 1d "$dir/tree/src/exec/planted.c"
    refused scripts/rules "$dir/tree"
    says 'src/exec/planted.c: its first line is not the SPDX'
}

it "a bare verb is refused" a_bare_verb_is_refused
it "a type has one header and a word" a_type_has_one_header_and_a_word
it "a file names its licence" a_file_names_its_licence
it "the tree keeps its rules" the_tree_keeps_its_rules
it "an include of what lies above is refused" an_upward_include_is_refused
it "ops/ and graph/ do not meet" kernels_and_programs_do_not_meet
it "cli/ may see fluid.h only" the_command_sees_fluid_h_only
it "a folder without a line is refused" a_folder_without_a_line_is_refused
it "a test may use the check harness" a_test_may_use_the_check_harness
it "a call outside its home is refused" calls_outside_their_home_are_refused
it "words in comments are no calls" words_in_comments_and_texts_are_not_calls
it "a mutable global is refused" a_mutable_global_is_refused

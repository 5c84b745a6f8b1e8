#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The documents keep up with the tree, and their programs run.
. tests/scene.sh

page() { # text: a copy of what the check reads, with this README
    rm -rf "$dir/tree"
    mkdir -p "$dir/tree/docs"
    cp -R src include scripts Makefile "$dir/tree"
    printf '%s\n' "$1" >"$dir/tree/README.md"
}

stale() { # text, words
    page "$1"
    refused scripts/docs "$dir/tree"
    says "$2"
}

documents_name_what_exists() { scripts/docs; }

stale_names_are_refused() {
    stale 'call `fl_gone_away`' 'README.md:1: fl_gone_away is not in the source'
    stale 'see `src/attic/x.c`' 'README.md:1: src/attic/x.c does not exist'
    stale 'type `make coffee`' 'README.md:1: make has no target coffee'
}

names_that_exist_pass() {
    page 'call `fl_errmsg()`, see `src/base/err.c`, type `make test T=map`'
    scripts/docs "$dir/tree"
}

a_long_readme_is_refused() {
    page "$(yes line | head -n 151)"
    refused scripts/docs "$dir/tree"
    says 'README.md:151: has 151 lines, may have 150'
}

a_message_that_the_wire_page_lacks_is_refused() {
    page 'text'
    sed 's/ PUSH:/ HUSH:/' docs/wire.md >"$dir/tree/docs/wire.md"
    refused scripts/docs "$dir/tree"
    says 'docs/wire.md: the row of /fluid.Server/Push lacks PUSH'
}

blocks() { # language, suffix: $dir/readme1.c and so on, one for each block
    awk -v out="$dir/readme" -v open="\`\`\`$1" -v end="$2" '
        $0 == open { n++; on = 1; next }
        /^```/ { on = 0 } on { print >(out n end) }' README.md
    [ -f "$dir/readme1$2" ]
}

# Every ```c and ```python block of README.md is a whole program.
readme_programs_run() {
    blocks c .c
    for c in "$dir"/readme*.c; do
        runs "$c"
    done
}

readme_scripts_run() {
    eval "$(scripts/env "$build")"
    blocks python .py
    for py in "$dir"/readme*.py; do
        (cd "$dir" && "$PADDLE_PYTHON" "$py") >"$dir/words"
        says 'loss '
    done
}

it "documents name what exists" documents_name_what_exists
it "stale names in documents are refused" stale_names_are_refused
it "names that exist pass" names_that_exist_pass
it "a README that grew too long is refused" a_long_readme_is_refused
it "a message that the wire page lacks is refused" \
    a_message_that_the_wire_page_lacks_is_refused
it "programs in README.md compile and run" readme_programs_run
it "scripts in README.md run" readme_scripts_run

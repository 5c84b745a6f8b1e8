#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first chapter, as a user plays it: train, save, load in a new process.
. tests/scene.sh
housing=$build/data/uci_housing/housing.data
line=$build/examples/fit_a_line

trains_saves_and_loads() {
    "$line" train "$housing" "$dir/model" >"$dir/passes"
    grep -q 'the loss of a batch is under 10' "$dir/passes"
    test -s "$dir/model/__model__" -a -s "$dir/model/fc_0.w_0"
    "$line" infer "$housing" "$dir/model" >"$dir/first"
    "$line" infer "$housing" "$dir/model" >"$dir/second"
    test "$(wc -l <"$dir/first")" -eq 102
    cmp "$dir/first" "$dir/second"
}

gives_the_same_bits_every_time() {
    "$line" train "$housing" "$dir/a" >/dev/null
    "$line" train "$housing" "$dir/b" >/dev/null
    cmp "$dir/a/fc_0.w_0" "$dir/b/fc_0.w_0"
    cmp "$dir/a/__model__" "$dir/b/__model__"
}

says_what_is_wrong_with_a_model() {
    "$line" train "$housing" "$dir/model" >/dev/null
    refused "$line" infer "$housing" "$dir/nowhere"
    says 'nowhere does not exist, expected a saved folder'
    truncate -s 40 "$dir/model/fc_0.w_0"
    refused "$line" infer "$housing" "$dir/model"
    says 'model/fc_0.w_0'
    truncate -s 100 "$dir/model/__model__"
    refused "$line" infer "$housing" "$dir/model"
    says 'model/__model__'
}

shows_what_was_saved() {
    "$line" train "$housing" "$dir/model" >/dev/null
    "$build/bin/paddle" show "$dir/model/__model__" >"$dir/program"
    grep -q 'mul(X=x, Y=fc_0.w_0) -> Out=fc_0.tmp_0' "$dir/program"
    "$build/bin/paddle" show "$dir/model" >"$dir/list"
    grep -q '3 files; .*/__manifest__ lists 3 of them as a model' "$dir/list"
    grep -q '__model__  program, 5 operators$' "$dir/list"
    grep -q 'fc_0.w_0  tensor f32\[13,1\]$' "$dir/list"
    "$build/bin/paddle" show "$dir/model/fc_0.w_0" | grep -q 'tensor f32\[13,1\]'
    refused "$build/bin/paddle" show "$dir/nowhere"
    says 'nowhere'
    refused "$build/bin/paddle" show "$0"
    says 'is neither a program nor a tensor'
    truncate -s 60 "$dir/model/fc_0.w_0"
    echo hello >"$dir/model/notes"
    "$build/bin/paddle" show "$dir/model" >"$dir/list"
    grep -q 'fc_0.w_0  NOT AS SAVED: .* has 60 bytes, but .* says 78' "$dir/list"
    grep -q 'notes  neither a program nor a tensor (not in the man' "$dir/list"
    rm "$dir/model/__manifest__"
    "$build/bin/paddle" show "$dir/model" | grep -q 'there is no manifest'
}

it "fit a line trains, saves and loads in a new process" trains_saves_and_loads
it "fit a line gives the same bits every time" gives_the_same_bits_every_time
it "fit a line says what is wrong with a model" says_what_is_wrong_with_a_model
it "paddle show prints what was saved" shows_what_was_saved

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Users of the original build with cmake and its options.
. tests/scene.sh

# The objects of the build are as good as new ones: only what is linked is made
# again. Make compares the flags, and compiles all where they differ.
reuse_objects() {
    mkdir -p "$dir/b/obj"
    cp -a "$build/flags" "$build/gen" "$dir/b"
    cp -a "$build/obj/src" "$build/obj/python" "$dir/b/obj"
    sed "s| -I$build/gen | -I$dir/b/gen |" "$build/flags" >"$dir/b/flags"
    touch -r "$build/flags" "$dir/b/flags"
}

configure() { cmake -S . -B "$dir/b" "$@"; }

builds_with_the_options_of_the_documents() {
    reuse_objects
    configure -DWITH_DOC=OFF -DWITH_GPU=OFF -DWITH_DISTRIBUTE=ON \
        -DWITH_SWIG_PY=ON -DWITH_PYTHON=ON >"$dir/words" 2>&1
    ! grep -i warning "$dir/words" || return 1
    cmake --build "$dir/b" -j 2
    test -f "$dir/b/lib/libfluid.so"
}

installs_under_the_prefix() {
    DESTDIR="$dir/root" cmake --install "$dir/b" --prefix /opt/fluid
    test -f "$dir/root/opt/fluid/include/fluid.h"
    test -f "$dir/root/opt/fluid/lib/libfluid.so.0"
    grep -q '^prefix=/opt/fluid$' \
        "$dir/root/opt/fluid/lib/pkgconfig/fluid.pc"
}

gpu_is_refused_in_one_sentence() {
    refused cmake -S . -B "$dir/gpu" -DWITH_GPU=ON
    says 'WITH_GPU=ON: Fluid has no GPU kernels; leave it OFF'
}

unknown_options_are_named_and_accepted() {
    cmake -S . -B "$dir/odd" -DWITH_WINGS=ON >"$dir/words" 2>&1
    says 'WITH_WINGS is not known here and changes nothing'
}

it "cmake builds with the documents' options" \
    builds_with_the_options_of_the_documents
it "cmake installs under the prefix" installs_under_the_prefix
it "cmake refuses WITH_GPU=ON in one sentence" gpu_is_refused_in_one_sentence
it "cmake accepts an unknown WITH_ option" \
    unknown_options_are_named_and_accepted

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `make install` puts in place can be found, linked and run.
. tests/scene.sh

root=$dir/root
prefix=/usr/local
at=$root$prefix

installs_all_parts() {
    make B="$build" install DESTDIR="$root" PREFIX=$prefix
    for f in include/fluid.h lib/libfluid.a lib/libfluid.so \
        lib/libfluid.so.0 lib/pkgconfig/fluid.pc \
        share/fluid/data/uci_housing/housing.data; do
        test -e "$at/$f" || { echo "$f is missing" && return 1; }
    done
}

has_a_soname() {
    readelf -d "$at/lib/libfluid.so" | grep -q 'soname: \[libfluid.so.0\]'
}

flags() { # what pkg-config says of the installed library
    PKG_CONFIG_PATH=$at/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root \
        pkg-config "$@" fluid
}

program() {
    cat >"$dir/user.c" <<END
#include <fluid.h>
int main(void)
{
    return fl_errmsg() ? 0 : 1;
}
END
}

links_through_pkg_config() {
    program
    gcc -std=c11 $(flags --cflags) "$dir/user.c" $(flags --libs) \
        -o "$dir/user"
    LD_LIBRARY_PATH=$at/lib "$dir/user"
}

links_statically() {
    program
    gcc -std=c11 $(flags --cflags) "$dir/user.c" "$at/lib/libfluid.a" \
        $(flags --static --libs-only-l | sed 's/-lfluid//') -o "$dir/static"
    "$dir/static"
}

the_command_finds_its_library() {
    env -u LD_LIBRARY_PATH "$at/bin/paddle" version
}

learn='import paddle, paddle.fluid as fluid
print(fluid.__file__, len(list(paddle.dataset.uci_housing.train()())))'

imports() { # site: the package there, without the tree or a home
    (cd "$dir" && env -u LD_LIBRARY_PATH HOME="$dir" PADDLE_DATA_HOME= \
        PYTHONPATH="$1" "$PADDLE_PYTHON" -c "$learn") >"$dir/words"
    says "$1/paddle/fluid/__init__.py 404"
}

the_package_is_where_python_looks() {
    imports "$root$("$PADDLE_PYTHON" scripts/site $prefix)"
}

another_prefix_is_explained() {
    PATH=/usr/bin:/bin scripts/installed '' "$at" "$at/lib/site" python3 \
        >"$dir/words"
    says "export PATH=$at/bin\"\${PATH:+:\$PATH}\""
    says "export LD_LIBRARY_PATH=$at/lib\""
    says "export PYTHONPATH=$at/lib/site\""
    says "export PKG_CONFIG_PATH=$at/lib/pkgconfig\""
    eval "$(grep export "$dir/words")"
    gcc "$dir/user.c" -I"$at/include" -L"$at/lib" -lfluid -o "$dir/user"
    "$dir/user"
}

anothers_package_is_left_alone() {
    mkdir -p "$dir/site/paddle"
    refused scripts/install-python "$build/python/paddle" "$dir/site"
    says 'is not ours'
}

# Unpacked as pip does: the package at the root, data beside it.
a_wheel_is_whole() {
    make -s B="$build" wheel
    mkdir "$dir/wheel"
    "$PADDLE_PYTHON" -m zipfile -e "$build"/dist/*.whl "$dir/wheel"
    cp -R "$dir/wheel"/*.data/data/share "$dir/wheel"
    imports "$dir/wheel"
}

venv() { # name, flags...: an environment with the wheel in it
    name=$1
    shift
    "$PADDLE_PYTHON" -m venv "$@" "$dir/$name" ||
        skip "python3 -m venv does not work here"
    "$dir/$name/bin/pip" install -q --no-index --no-deps "$build"/dist/*.whl
}

outside() { # command...: without the tree's variables, elsewhere
    (cd "$dir" && env -u LD_LIBRARY_PATH -u PYTHONPATH -u PADDLE_PYTHON "$@")
}

pip_installs_the_command() {
    venv whole --system-site-packages
    outside whole/bin/paddle version >"$dir/words"
    says 'Fluid '
    outside whole/bin/python -c "$learn" >"$dir/words"
    says 'site-packages/paddle/fluid/__init__.py 404'
    grep -q '^Requires-External: libgrpc' \
        "$dir"/whole/lib/*/site-packages/fluid_engine-*/METADATA
}

without_numpy_it_is_one_sentence() {
    venv bare
    refused outside bare/bin/python -c 'import paddle.fluid'
    says 'ImportError: paddle.fluid needs numpy, which'
    outside bare/bin/paddle version >"$dir/words"
}

# The library in place of ours needs one that is gone.
without_a_library_it_is_one_sentence() {
    [ -d "$dir/whole" ] || skip "python3 -m venv does not work here"
    echo 'int gone;' >"$dir/gone.c"
    gcc -shared -fPIC "$dir/gone.c" -o "$dir/libgone.so"
    gcc -shared -fPIC -Wl,--no-as-needed -Wl,-soname,libfluid.so.0 \
        "$dir/gone.c" -L"$dir" -lgone \
        -o "$(echo "$dir"/whole/lib/*/site-packages/paddle/fluid/libfluid.so.0)"
    rm "$dir/libgone.so"
    for command in 'paddle version' 'python -c "import paddle.fluid"'; do
        refused outside sh -c "whole/bin/$command"
        says 'libgone.so: cannot open shared object file: No such file or '
        says 'directory; the library needs these packages of Debian 12 or'
    done
}

eval "$(scripts/env "$build")"
it "make install puts all parts in place" installs_all_parts
it "the library has a soname" has_a_soname
it "a program links through pkg-config" links_through_pkg_config
it "a program links statically" links_statically
it "the installed command finds its library" the_command_finds_its_library
it "the package is where python looks" the_package_is_where_python_looks
it "another prefix is explained" another_prefix_is_explained
it "another's package is left alone" anothers_package_is_left_alone
it "a wheel is whole" a_wheel_is_whole
it "pip installs the command and the package" pip_installs_the_command
it "without numpy an import is one sentence" without_numpy_it_is_one_sentence
it "without a library it is one sentence" without_a_library_it_is_one_sentence

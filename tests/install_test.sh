#!/bin/sh
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

eval "$(scripts/env "$build")"
it "make install puts all parts in place" installs_all_parts
it "the library has a soname" has_a_soname
it "a program links through pkg-config" links_through_pkg_config
it "a program links statically" links_statically
it "the installed command finds its library" the_command_finds_its_library
it "the package is where python looks" the_package_is_where_python_looks
it "another's package is left alone" anothers_package_is_left_alone
it "a wheel is whole" a_wheel_is_whole

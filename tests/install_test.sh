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
    test -x "$at/bin/paddle" || skip "the command is not there yet"
    env -u LD_LIBRARY_PATH "$at/bin/paddle" version
}

it "make install puts all parts in place" installs_all_parts
it "the library has a soname" has_a_soname
it "a program links through pkg-config" links_through_pkg_config
it "a program links statically" links_statically
it "the installed command finds its library" the_command_finds_its_library

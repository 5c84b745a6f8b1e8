#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The test runner counts, fails where it must, and starts long tests first.
. tests/scene.sh

fake() { # name, lines, exit code: a test program
    mkdir -p "$dir/test"
    printf '#!/bin/sh\n%s\nprintf "%s"\nexit %d\n' "${4:-}" "$2" "$3" \
        >"$dir/test/$1"
    chmod +x "$dir/test/$1"
}

run() { # names...: what the runner says
    for name in "$@"; do
        set -- "$@" "$dir/test/$name"
        shift
    done
    scripts/run-tests "$dir" "$@" >"$dir/words" 2>&1
}

last() { # line: the last one that was said
    [ "$(tail -n 1 "$dir/words")" = "$1" ] || says "$1 (as the last line)"
}

OK='[       OK ] one\n[       OK ] two\n'
BAD='[  FAILED  ] three\n[  FAILED  ] 1 test(s), listed below:\n'
BAD="$BAD[  FAILED  ] three\n"
SKIP='           skipped: no data\n[  SKIPPED ] four\n'

sums_what_passed() {
    fake a "$OK" 0
    fake b "$OK$SKIP" 0
    run a b
    last '4 passed, 0 failed, 1 skipped'
    says 'SKIPPED 1, because: no data'
    says '     b: four'
}

a_failure_is_counted_once() {
    fake a "$OK$BAD" 1
    ! run a || return 1
    last '2 passed, 1 failed'
    says '    [  FAILED  ] three'
}

a_crash_is_a_failure() {
    fake a "$OK" 139
    ! run a || return 1
    last '2 passed, 1 failed'
}

silence_is_a_failure() {
    fake a '' 0
    ! run a || return 1
    last '0 passed, 1 failed'
}

no_test_at_all_is_a_failure() {
    ! run || return 1
    last '0 passed, 1 failed'
}

a_line_has_the_seconds() {
    fake a "$OK" 0
    run a
    grep -qE '^ok   a +2 +[0-9]+\.[0-9] s +[0-9]+\.[0-9] s CPU$' "$dir/words"
}

# As many slow tests as run at once: the quick one starts when one has ended.
the_longest_of_the_last_run_start_first() {
    many=$((3 * $(getconf _NPROCESSORS_ONLN)))
    slow=
    for i in $(seq $many); do
        fake "slow$i" "$OK" 0 "echo slow >>$dir/order"
        slow="$slow \"slow$i\": 9,"
    done
    fake quick "$OK" 0 "echo quick >>$dir/order"
    mkdir -p "$dir/log"
    echo "{$slow \"quick\": -1}" >"$dir/log/seconds.json"
    run quick $(seq -f 'slow%g' $many)
    [ "$(sed -n 1p "$dir/order")" = slow ]
    ! grep -e -1 "$dir/log/seconds.json" || return 1
}

the_meta_test_comes_last() {
    fake meta_test "$OK" 0 "test -e $dir/checked/slow || exit 3"
    fake slow "$OK" 0 "sleep 0.3; touch $dir/checked/slow"
    run meta_test slow
    last '4 passed, 0 failed'
}

it "the runner sums what passed" sums_what_passed
it "a failure is counted once" a_failure_is_counted_once
it "a crash is a failure" a_crash_is_a_failure
it "a silent test is a failure" silence_is_a_failure
it "no test at all is a failure" no_test_at_all_is_a_failure
it "a line has the seconds that a test took" a_line_has_the_seconds
it "the longest of the last run start first" \
    the_longest_of_the_last_run_start_first
it "the meta-test waits for all others" the_meta_test_comes_last

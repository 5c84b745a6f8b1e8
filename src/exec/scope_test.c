/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "exec/scope.h"

static void finds_in_itself_then_in_its_parents(void)
{
    fl_scope *root = fl_scope_new();
    fl_scope *kid = fl_scope_child(root);
    fl_value *a = fl_scope_var(root, "a");
    CHECK(fl_scope_find(kid, "a") == a);
    CHECK(fl_scope_var(kid, "a") != a);
    CHECK(fl_scope_find(kid, "a") != a);
    CHECK(!fl_scope_find(root, "b"));
    CHECK(fl_scope_root(kid) == root);
    fl_scope_free(root);
}

static void keeps_values_in_place(void)
{
    static char name[1000][8];
    fl_scope *s = fl_scope_new();
    fl_value *first = fl_scope_var(s, "first");
    for (int i = 0; i < 1000; i++) {
        name[i][0] = (char)('a' + i % 26);
        name[i][1] = (char)('a' + i / 26 % 26);
        name[i][2] = (char)('a' + i / 676);
        fl_scope_var(s, name[i]);
    }
    CHECK(fl_scope_find(s, "first") == first);
    fl_scope_free(s);
}

static void counts_what_was_erased(void)
{
    fl_scope *root = fl_scope_new();
    fl_scope *kid = fl_scope_child(root);
    uint64_t before = fl_scope_changes(kid);
    fl_scope_var(root, "a");
    CHECK_INT((int64_t)fl_scope_changes(kid), (int64_t)before);
    CHECK(fl_scope_erase(root, "a"));
    CHECK(!fl_scope_erase(root, "a"));
    CHECK(fl_scope_changes(kid) != before);
    fl_scope_free(root);
}

static void ends_with_its_kids(void)
{
    fl_scope *root = fl_scope_new();
    for (int i = 0; i < 3; i++)
        fl_scope_var(fl_scope_child(root), "a");
    fl_scope_drop_kids(root);
    fl_scope_child(fl_scope_child(root));
    fl_scope_free(root); /* the sanitizer reports what was not freed */
}

static void finds_the_file_of_a_variable(void)
{
    fl_scope *s = fl_scope_new();
    CHECK(!fl_scope_file(s, "emb"));
    CHECK_OK(fl_scope_set_file(s, "emb", "model/emb"));
    CHECK_OK(fl_scope_set_file(s, "emb", "other/emb"));
    CHECK_STR(fl_scope_file(s, "emb"), "other/emb");
    CHECK(!fl_scope_file(s, "emb2"));
    fl_scope_free(s);
}

const fl_test fl_tests[] = {
    {"scope finds in itself, then in its parents",
     finds_in_itself_then_in_its_parents},
    {"scope keeps values in place", keeps_values_in_place},
    {"scope counts what was erased", counts_what_was_erased},
    {"scope ends with its kids", ends_with_its_kids},
    {"scope finds the file that a variable starts from",
     finds_the_file_of_a_variable},
    {0},
};

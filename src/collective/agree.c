/* SPDX-License-Identifier: Apache-2.0 */
/* agree.c - the ranks compare digests of their programs. Only if these differ,
 * they exchange the texts to show the difference. */
#include "collective/agree.h"

#include "base/sha256.h"

#include <string.h>

enum {
    SHOWN = 150,          /* bytes of a line that the error message shows */
    TEXT_LIMIT = 64 << 20 /* bytes of a program's text that are compared */
};

/* Attributes that may differ between ranks. */
static const char *const own_attrs[] = {
    "rank",          "trainer_id",      "endpoint",
    "endpoint_list", "other_endpoints", "trainers",
    "seed",          "fix_seed",        "op_callstack",
    "device_id",     "op_namescope",
};

char *fl_agree_text(const fl_program *p)
{
    fl_program *copy = fl_program_clone(p, false);
    copy->random_seed = 0;
    for (int64_t b = 0; b < copy->blocks.n; b++) {
        const fl_block *block = copy->blocks.at[b];
        for (int64_t i = 0; i < block->ops.n; i++)
            for (size_t k = 0; k < sizeof own_attrs / sizeof *own_attrs; k++)
                fl_desc_remove_attr(&block->ops.at[i]->desc, own_attrs[k]);
    }
    char *text = fl_program_text(copy);
    fl_program_free(copy);
    return text;
}

typedef struct digest {
    unsigned char sha[FL_SHA256];
    uint64_t size; /* of the text */
} digest;

static size_t line_size(const char *line)
{
    return strcspn(line, "\n");
}

static void show_line(const char *line, char out[SHOWN])
{
    line += strspn(line, " ");
    const size_t n = line_size(line);
    if (!n) {
        memcpy(out, "its end", sizeof "its end");
        return;
    }
    const size_t most = n < SHOWN - 1 ? n : SHOWN - 1;
    memcpy(out, line, most);
    out[most] = 0;
    for (char *c = out; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

/* The error for two texts that differ. */
static fl_err tell_difference(int rank, const char *mine, const char *first)
{
    char a[SHOWN], b[SHOWN];
    while (*mine && *first && line_size(mine) == line_size(first) &&
           !memcmp(mine, first, line_size(mine))) {
        mine += line_size(mine) + (mine[line_size(mine)] == '\n');
        first += line_size(first) + (first[line_size(first)] == '\n');
    }
    show_line(first, a);
    show_line(mine, b);
    return fl_fail(FL_EINVAL,
                   "rank %d runs another program than rank 0; the first "
                   "difference is: rank 0 has `%s`, rank %d has `%s`. Start "
                   "the same script with the same arguments on all ranks",
                   rank, a, rank, b);
}

static fl_err compare_texts(fl_backend *b, int rank, const char *text,
                            uint64_t size)
{
    char *first = fl_mem_alloc((size_t)size + 1);
    if (!rank)
        memcpy(first, text, (size_t)size);
    fl_err err = b->broadcast(b->self, 0, first, (size_t)size);
    if (!err && rank && strcmp(first, text)) {
        err = tell_difference(rank, text, first);
        const fl_sentence why = fl_sentence_keep();
        b->fail(b->self, why.text);
        fl_sentence_restore(&why);
    } else if (!err) {
        err = b->barrier(b->self); /* fails with the error of another rank */
    }
    fl_mem_free(first);
    return err;
}

fl_err fl_agree(fl_backend *b, int ranks, int rank, const char *text)
{
    digest all[FL_MESH_WORLD] = {0};
    size_t at[FL_MESH_WORLD + 1];
    fl_sha256 sha;
    const uint64_t size = strlen(text);
    bool same = true;
    for (int i = 0; i <= ranks; i++)
        at[i] = (size_t)i * sizeof *all;
    fl_sha256_init(&sha);
    fl_sha256_add(&sha, text, size);
    fl_sha256_end(&sha, all[rank].sha);
    all[rank].size = size;
    FL_TRY(b->all_gather(b->self, all, at));
    for (int i = 1; i < ranks; i++)
        same &= fl_sha256_same(all[i].sha, all[0].sha);
    if (same)
        return FL_OK;
    if (all[0].size > TEXT_LIMIT)
        return fl_fail(FL_EINVAL, "the ranks run different programs");
    return compare_texts(b, rank, text, all[0].size);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tally.c - keeps the last report of each rank, and the sum of all reports. */
#include "pserver/tally.h"

/* Small enough that a sum over all trainers of any job fits 64 bits. */
#define COUNT_MOST (INT64_C(1) << 49)

typedef struct tally {
    char *name;
    fl_shape shape;
    int ranks;          /* how many ranks have reported */
    int64_t *sum;       /* sum of all reports */
    int64_t **reported; /* last report of each rank; NULL: none yet */
} tally;

struct fl_tallies {
    int trainers;
    size_t bytes;
    FL_VEC(tally) all;
};

fl_tallies *fl_tallies_new(int trainers)
{
    fl_tallies *t = fl_mem_alloc(sizeof *t);
    t->trainers = trainers;
    return t;
}

void fl_tallies_free(fl_tallies *t)
{
    if (!t)
        return;
    for (int64_t i = 0; i < t->all.n; i++) {
        tally *y = &t->all.at[i];
        for (int r = 0; r < t->trainers; r++)
            fl_mem_free(y->reported[r]);
        fl_mem_free(y->reported);
        fl_mem_free(y->sum);
        fl_mem_free(y->name);
    }
    fl_vec_fini(&t->all);
    fl_mem_free(t);
}

/* --- checking a report --- */

static size_t bytes_of(const fl_item *item)
{
    return (size_t)fl_shape_numel(&item->shape) * sizeof(int64_t);
}

static fl_err check_item(const fl_item *item)
{
    if (item->kind != FL_LOD_TENSOR || item->dtype != FL_I64 || item->first)
        return fl_fail(FL_EINVAL,
                       "tally: \"%s\" is not a whole tensor of int64 counts",
                       item->name);
    const int64_t n = fl_shape_numel(&item->shape);
    if (n < 1 || n > FL_TALLY_MOST)
        return fl_fail(FL_EINVAL,
                       "tally: \"%s\" has %lld counts, expected 1 to %d",
                       item->name, (long long)n, FL_TALLY_MOST);
    return FL_OK;
}

static fl_err check_counts(const fl_item *item, const int64_t *count)
{
    for (int64_t i = 0; i < fl_shape_numel(&item->shape); i++)
        if (count[i] < 0 || count[i] > COUNT_MOST)
            return fl_fail(
                FL_EINVAL,
                "tally: count %lld of \"%s\" is %lld, expected 0 to %lld",
                (long long)i, item->name, (long long)count[i],
                (long long)COUNT_MOST);
    return FL_OK;
}

/* --- storing a report --- */

static fl_err find_tally(fl_tallies *t, const fl_item *item, tally **out)
{
    char came[FL_SHAPE_TEXT], had[FL_SHAPE_TEXT];
    *out = NULL;
    for (int64_t i = 0; i < t->all.n && !*out; i++)
        if (!strcmp(t->all.at[i].name, item->name))
            *out = &t->all.at[i];
    if (*out && !fl_shape_equal(&(*out)->shape, &item->shape))
        return fl_fail(FL_ESHAPE,
                       "tally: \"%s\" is %s, another trainer reported %s",
                       item->name, fl_shape_text(&item->shape, came),
                       fl_shape_text(&(*out)->shape, had));
    if (!*out && t->all.n == FL_TALLIES_MOST)
        return fl_fail(
            FL_EINVAL,
            "tally: \"%s\" is one name too many, at most %d are kept",
            item->name, FL_TALLIES_MOST);
    return FL_OK;
}

static fl_err take_room(fl_tallies *t, const char *name, size_t bytes)
{
    if (bytes > FL_TALLY_BYTES - t->bytes)
        return fl_fail(FL_EINVAL,
                       "tally: \"%s\" needs %zu bytes, but %zu of %d are left",
                       name, bytes, FL_TALLY_BYTES - t->bytes, FL_TALLY_BYTES);
    t->bytes += bytes;
    return FL_OK;
}

/* Find the memory for the report of a rank; *of is the tally that it is for. */
static fl_err find_report(fl_tallies *t, int rank, const fl_item *item,
                          tally **of, int64_t **out)
{
    const size_t ranks = (size_t)t->trainers * sizeof(int64_t *);
    const size_t size = bytes_of(item);
    FL_TRY(find_tally(t, item, of));
    const bool told = *of && (*of)->reported[rank];
    FL_TRY(
        take_room(t, item->name, (*of ? 0 : size + ranks) + (told ? 0 : size)));
    if (!*of) {
        fl_push(&t->all, (tally){.name = fl_mem_strdup(item->name),
                                 .shape = item->shape,
                                 .sum = fl_mem_alloc(size),
                                 .reported = fl_mem_alloc(ranks)});
        *of = &t->all.at[t->all.n - 1];
    }
    if (!told) {
        (*of)->reported[rank] = fl_mem_alloc(size);
        (*of)->ranks++;
    }
    *out = (*of)->reported[rank];
    return FL_OK;
}

static fl_err store_counts(fl_tallies *t, int rank, const fl_item *item,
                           const int64_t *count, tally **of)
{
    int64_t *told;
    FL_TRY(check_counts(item, count));
    FL_TRY(find_report(t, rank, item, of, &told));
    for (int64_t i = 0; i < fl_shape_numel(&item->shape); i++) {
        (*of)->sum[i] += count[i] - told[i];
        told[i] = count[i];
    }
    return FL_OK;
}

/* --- the answer --- */

static fl_err take_report(fl_tallies *t, int rank, const fl_parcel *p,
                          tally **out)
{
    const int n = p ? p->n : 0;
    if (n != 1)
        return fl_fail(FL_EINVAL, "tally: %d tensors came, expected one", n);
    const fl_item *item = &p->item[0];
    FL_TRY(check_item(item));
    int64_t *count = fl_mem_alloc(bytes_of(item));
    fl_bytes_copy(item->data, 0, count, bytes_of(item));
    const fl_err err = store_counts(t, rank, item, count, out);
    fl_mem_free(count);
    return err;
}

static fl_err copy_sum(const tally *y, fl_parcel *to)
{
    fl_tensor sum = {0};
    FL_TRY(fl_tensor_resize(&sum, FL_I64, &y->shape));
    memcpy(sum.data, y->sum, fl_tensor_bytes(&sum));
    fl_parcel_add(to, y->name, &sum);
    fl_tensor_fini(&sum);
    return FL_OK;
}

fl_msg fl_tallies_report(fl_tallies *t, int rank, const fl_msg *m)
{
    fl_msg answer = {.kind = FL_MSG_VALUES,
                     .job = m->job,
                     .session = m->session,
                     .tag = m->tag};
    fl_parcel *sum = fl_parcel_new();
    tally *y = NULL;
    fl_err err = take_report(t, rank, fl_parcel_of(m->blob), &y);
    if (!err)
        err = copy_sum(y, sum);
    if (err) {
        answer.kind = FL_MSG_ERROR;
        answer.code = (int)err;
        answer.text = fl_errmsg();
    } else {
        answer.count = y->ranks;
        answer.blob = fl_parcel_blob(sum);
    }
    fl_parcel_unref(sum);
    return answer;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* lookup.c - values that a trainer asks its servers for.
 *
 * A lookup whose answer does not fit into one message is cut into chunks. All
 * servers are asked at once, each for as many chunks as one answer can carry,
 * until every chunk has come.
 *
 * Easy to get wrong: a lost session loses all requests. A lookup
 * that waits for one begins again with its first chunk in the next session. */
#include "trainer/lookup.h"

#include "base/map.h"
#include "base/vec.h"

/* A request to one server. */
typedef struct query_part {
    fl_parcel *question; /* NULL: this server is not asked */
    size_t bytes;        /* upper bound of the answer's size */
    uint64_t tag;        /* of the request; 0: answered or lost */
    fl_parcel *answer;
} query_part;

/* One call of fl_lookups_run. */
typedef struct query {
    struct query *next; /* in the list of running queries */
    int servers;
    query_part *parts; /* by server */
} query;

struct fl_lookups {
    fl_link *link;
    const fl_placement *place;
    const fl_job *job;
    fl_map pieces; /* name on a server -> fl_piece of the placement */
    query *queries;
};

/* --- queries --- */

static query *begin_query(fl_lookups *s)
{
    query *q = fl_mem_alloc(sizeof *q);
    q->servers = s->job->servers;
    q->parts = fl_mem_alloc((size_t)q->servers * sizeof *q->parts);
    q->next = s->queries;
    s->queries = q;
    return q;
}

static void clear_parts(query *q)
{
    for (int i = 0; i < q->servers; i++) {
        fl_parcel_unref(q->parts[i].question);
        fl_parcel_unref(q->parts[i].answer);
        q->parts[i] = (query_part){0};
    }
}

static void end_query(fl_lookups *s, query *q)
{
    query **at = &s->queries;
    while (*at != q)
        at = &(*at)->next;
    *at = q->next;
    clear_parts(q);
    fl_mem_free(q->parts);
    fl_mem_free(q);
}

static fl_parcel *question_for(query *q, int server)
{
    query_part *p = &q->parts[server];
    if (!p->question)
        p->question = fl_parcel_new();
    return p->question;
}

static bool is_answered(const void *of)
{
    const query *q = of;
    for (int i = 0; i < q->servers; i++)
        if (q->parts[i].tag)
            return false;
    return true;
}

/* Send all requests and wait. The session may be lost during the wait. */
static fl_err ask_once(fl_lookups *s, query *q, const fl_watch *by)
{
    FL_TRY(fl_link_wait_ready(s->link, by));
    fl_client *client = fl_link_client(s->link);
    for (int i = 0; i < q->servers; i++) {
        query_part *p = &q->parts[i];
        if (!p->question)
            continue;
        const fl_blob blob = fl_parcel_blob(p->question);
        const fl_err err = fl_client_ask(client, i, blob, fl_link_now());
        fl_keeper_parcels.drop(NULL, blob);
        FL_TRY(err);
        p->tag = fl_client_tag(client);
    }
    fl_link_flush(s->link);
    return fl_link_wait(s->link, is_answered, q, by, 0);
}

/* Repeat ask_once until all requests are answered in one session. */
static fl_err ask_servers(fl_lookups *s, query *q, const fl_watch *by)
{
    int64_t fences;
    do {
        fences = fl_link_fences(s->link);
        FL_TRY(ask_once(s, q, by));
    } while (fences != fl_link_fences(s->link));
    return FL_OK;
}

/* --- chunks --- */

/* A whole lookup, or some of its rows, or some elements of its variable. */
typedef struct chunk {
    const fl_lookup *of;
    int64_t first, n; /* rows or elements; n < 0: the whole variable */
    size_t bytes;     /* upper bound of the answer's size; 0: not known */
} chunk;

typedef FL_VEC(chunk) chunks;

static bool is_range(const chunk *c)
{
    return c->of->n < 0 && c->n >= 0;
}

static void cut_lookup(const fl_lookups *s, const fl_lookup *l, chunks *out)
{
    const fl_piece *piece = fl_map_get(&s->pieces, l->table);
    const bool whole = l->n < 0;
    if (!piece || l->most || (whole && piece->first == FL_BY_ID)) {
        fl_push(out, (chunk){.of = l, .n = l->n});
        return;
    }
    const fl_shape *shape = &piece->shape;
    const int64_t all = whole ? fl_shape_numel(shape) : l->n;
    const size_t one =
        (whole ? 1 : (size_t)fl_shape_span(shape, 1, shape->rank)) *
        sizeof(double);
    const int64_t fit = (int64_t)(s->job->max_values / (one ? one : 1));
    const int64_t most = fit > 0 ? fit : 1;
    if (all <= most) {
        fl_push(out, (chunk){l, 0, l->n, (size_t)all * one});
        return;
    }
    for (int64_t first = 0; first < all; first += most) {
        const int64_t n = all - first < most ? all - first : most;
        fl_push(out, (chunk){l, first, n, (size_t)n * one});
    }
}

static void add_question(fl_parcel *to, const chunk *c)
{
    const fl_lookup *l = c->of;
    if (l->most)
        fl_parcel_want_ids(to, l->table, l->most, l->n ? l->rows : NULL);
    else if (is_range(c))
        fl_parcel_want_range(to, l->table, c->first, c->n);
    else
        fl_parcel_want(to, l->table, c->n,
                       c->n > 0 ? l->rows + c->first : NULL);
}

/* Ask for the chunks from `from` on, as many as each server can answer in one
 * message. Returns the first chunk that is not asked for. */
static int64_t add_questions(fl_lookups *s, query *q, const chunks *all,
                             int64_t from)
{
    int64_t to = from;
    clear_parts(q);
    for (; to < all->n; to++) {
        const chunk *c = &all->at[to];
        query_part *p = &q->parts[c->of->server];
        if (p->question && c->bytes > s->job->max_values - p->bytes)
            break;
        add_question(question_for(q, c->of->server), c);
        p->bytes += c->bytes;
    }
    return to;
}

/* --- answers --- */

static bool answers_chunk(const fl_item *item, const chunk *c)
{
    const fl_lookup *l = c->of;
    if (strcmp(item->name, l->table) || (c->n >= 0 && !item->shape.rank) ||
        item->first != (is_range(c) ? c->first : 0))
        return false;
    if (l->most)
        return item->dtype == FL_I64 && item->shape.rank == 1 &&
               item->shape.dim[0] <= l->most;
    return c->n < 0 || item->shape.dim[0] == c->n;
}

static fl_err fail_answer(const fl_lookups *s, const chunk *c)
{
    const fl_lookup *l = c->of;
    const char *address = s->place->servers[l->server];
    if (c->n < 0)
        return fl_fail(FL_EPROTO, "%s has sent no \"%s\" when asked for it",
                       address, l->table);
    return fl_fail(FL_EPROTO,
                   "%s has not sent the %lld %s of \"%s\" that it was asked "
                   "for",
                   address, (long long)(l->most ? l->most : c->n),
                   l->most       ? "ids"
                   : is_range(c) ? "elements"
                                 : "rows",
                   l->table);
}

/* The shape of the lookup's output, given the answer to one of its chunks. */
static fl_shape shape_of_output(const fl_lookups *s, const chunk *c,
                                const fl_item *item)
{
    fl_shape shape = item->shape;
    if (is_range(c))
        return ((const fl_piece *)fl_map_get(&s->pieces, c->of->table))->shape;
    if (c->of->n >= 0 && !c->of->most)
        shape.dim[0] = c->of->n;
    return shape;
}

static fl_err copy_chunk(const fl_lookups *s, const chunk *c,
                         const fl_item *item)
{
    fl_tensor *out = c->of->out;
    const fl_shape whole = shape_of_output(s, c, item);
    const bool fits = out->data && !out->buf && out->dtype == item->dtype &&
                      fl_shape_equal(&out->shape, &whole);
    if (c->n == c->of->n && !fits)
        return fl_item_tensor(item, out);
    if (!c->first && !fits)
        FL_TRY(fl_tensor_resize(out, item->dtype, &whole));
    const size_t at =
        c->first ? item->data.size / (size_t)c->n * (size_t)c->first : 0;
    if (item->kind != FL_LOD_TENSOR || item->dtype != out->dtype ||
        !fl_shape_equal(&whole, &out->shape) ||
        at + item->data.size > fl_tensor_bytes(out))
        return fail_answer(s, c);
    fl_bytes_copy(item->data, 0, (char *)out->data + at, item->data.size);
    return FL_OK;
}

/* Copy the values of the answers. A server answers in the order of the request.
 */
static fl_err copy_answers(const fl_lookups *s, const query *q,
                           const chunks *all, int64_t from, int64_t to)
{
    int *next = fl_mem_alloc((size_t)q->servers * sizeof *next);
    fl_err err = FL_OK;
    for (int64_t i = from; i < to && !err; i++) {
        const chunk *c = &all->at[i];
        const fl_parcel *came = q->parts[c->of->server].answer;
        const int at = next[c->of->server]++;
        const fl_item *item = came && at < came->n ? &came->item[at] : NULL;
        err = item && answers_chunk(item, c) ? copy_chunk(s, c, item)
                                             : fail_answer(s, c);
    }
    fl_mem_free(next);
    return err;
}

static fl_err ask_for_chunks(fl_lookups *s, query *q, const fl_watch *by,
                             const chunks *all)
{
    int64_t fences = 0;
    for (int64_t from = 0; from < all->n;) {
        const int64_t to = add_questions(s, q, all, from);
        FL_TRY(ask_servers(s, q, by));
        if (from && fl_link_fences(s->link) != fences) {
            from = 0;
            continue;
        }
        fences = fl_link_fences(s->link);
        fl_link_unlock(s->link);
        const fl_err err = copy_answers(s, q, all, from, to);
        fl_link_lock(s->link);
        FL_TRY(err);
        from = to;
    }
    return FL_OK;
}

/* --- public functions --- */

fl_lookups *fl_lookups_new(fl_link *link, const fl_placement *place,
                           const fl_job *job)
{
    fl_lookups *s = fl_mem_alloc(sizeof *s);
    *s = (fl_lookups){.link = link, .place = place, .job = job};
    for (int i = 0; i < place->n_pieces; i++)
        fl_map_put(&s->pieces, place->pieces[i].name,
                   (fl_piece *)&place->pieces[i]);
    return s;
}

void fl_lookups_free(fl_lookups *s)
{
    if (!s)
        return;
    fl_map_fini(&s->pieces);
    fl_mem_free(s);
}

fl_err fl_lookups_run(fl_lookups *s, const fl_watch *by, int n,
                      const fl_lookup *lookups)
{
    chunks all = {0};
    for (int i = 0; i < n; i++)
        cut_lookup(s, &lookups[i], &all);
    query *q = begin_query(s);
    const fl_err err = ask_for_chunks(s, q, by, &all);
    end_query(s, q);
    fl_vec_fini(&all);
    return err;
}

void fl_lookups_answer(fl_lookups *s, int server, uint64_t tag,
                       fl_parcel *values)
{
    for (query *q = s->queries; q; q = q->next) {
        query_part *p = &q->parts[server];
        if (p->tag != tag)
            continue;
        p->tag = 0;
        fl_parcel_unref(p->answer);
        p->answer = fl_parcel_ref(values);
        return;
    }
}

void fl_lookups_lose(fl_lookups *s)
{
    for (query *q = s->queries; q; q = q->next)
        for (int i = 0; i < q->servers; i++)
            q->parts[i].tag = 0;
}

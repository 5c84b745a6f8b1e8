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

enum {
    TICKETS_MOST = 64 /* queries that were asked ahead and not waited for */
};

/* By which requests a query is sent. */
typedef enum query_way {
    OWN_REQUESTS, /* requests of its own */
    NEXT_PULL,    /* the pull of the next step */
    CURRENT_PULL  /* the pull of the step that has begun */
} query_way;

/* A request to one server. */
typedef struct query_part {
    fl_parcel *question; /* NULL: this server is not asked */
    size_t bytes;        /* upper bound of the answer's size */
    uint64_t tag;        /* of the request; 0: answered or lost */
    fl_parcel *answer;
    int read; /* items of the answer that were copied */
} query_part;

/* A whole lookup, or some of its rows, or some elements of its variable. */
typedef struct chunk {
    const fl_lookup *of;
    int64_t first, n; /* rows or elements; n < 0: the whole variable */
    size_t bytes;     /* upper bound of the answer's size; 0: not known */
} chunk;

typedef FL_VEC(chunk) chunk_list;

/* What is asked for by one call. */
typedef struct fl_query {
    struct fl_query *next; /* in the list of running queries */
    uint64_t ticket;       /* of fl_lookups_ask; 0: its caller waits */
    chunk_list chunks;
    int64_t from, to; /* chunks that were asked for last */
    int64_t fences;   /* sessions lost when they were */
    query_way way;
    int64_t round; /* CURRENT_PULL: version that the pull brings */
    int servers;
    query_part parts[]; /* by server */
} fl_query;

struct fl_lookups {
    fl_link *link;
    const fl_placement *place;
    const fl_job *job;
    fl_map pieces;     /* name on a server -> fl_piece of the placement */
    fl_query *queries; /* those that are not ended, the newest first */
    fl_query *spare;   /* one that has ended: memory for the next; or NULL */
    uint64_t tickets;  /* the last one that was given */
};

/* --- queries --- */

static fl_query *begin_query(fl_lookups *s)
{
    const int n = s->job->servers;
    fl_query *q = s->spare;
    s->spare = NULL;
    if (!q)
        q = fl_mem_alloc(sizeof *q + (size_t)n * sizeof *q->parts);
    q->servers = n;
    q->next = s->queries;
    s->queries = q;
    return q;
}

static void clear_parts(fl_query *q)
{
    for (int i = 0; i < q->servers; i++) {
        fl_parcel_unref(q->parts[i].question);
        fl_parcel_unref(q->parts[i].answer);
        q->parts[i] = (query_part){0};
    }
}

static void query_free(fl_query *q)
{
    if (q)
        fl_vec_fini(&q->chunks);
    fl_mem_free(q);
}

static void end_query(fl_lookups *s, fl_query *q)
{
    fl_query **at = &s->queries;
    while (*at != q)
        at = &(*at)->next;
    *at = q->next;
    clear_parts(q);
    query_free(s->spare);
    *q = (fl_query){.chunks = q->chunks};
    q->chunks.n = 0;
    s->spare = q;
}

static fl_parcel *question_for(fl_query *q, int server)
{
    query_part *p = &q->parts[server];
    if (!p->question)
        p->question = fl_parcel_new();
    return p->question;
}

static bool is_answered(const void *of)
{
    const fl_query *q = of;
    for (int i = 0; i < q->servers; i++)
        if (q->parts[i].tag)
            return false;
    return true;
}

/* Send all requests of a query. The client is ready. */
static fl_err send_questions(fl_lookups *s, fl_query *q)
{
    fl_client *client = fl_link_client(s->link);
    q->fences = fl_link_fences(s->link);
    for (int i = 0; i < q->servers; i++) {
        query_part *p = &q->parts[i];
        p->read = 0;
        if (!p->question)
            continue;
        const fl_blob blob = fl_parcel_blob(p->question);
        const fl_err err = fl_client_ask(client, i, blob, fl_link_now());
        fl_keeper_parcels.drop(NULL, blob);
        FL_TRY(err);
        p->tag = fl_client_tag(client);
    }
    fl_link_flush(s->link);
    return FL_OK;
}

/* Wait until all requests are answered in one session. If it is lost during the
 * wait, they are sent again. */
static fl_err await_answers(fl_lookups *s, fl_query *q, const fl_watch *by)
{
    for (;;) {
        FL_TRY(fl_link_wait(s->link, is_answered, q, by, 0));
        if (q->fences == fl_link_fences(s->link))
            return FL_OK;
        FL_TRY(fl_link_wait_ready(s->link, by));
        FL_TRY(send_questions(s, q));
    }
}

/* --- chunks --- */

static bool is_range(const chunk *c)
{
    return c->of->n < 0 && c->n >= 0;
}

static void cut_lookup(const fl_lookups *s, const fl_lookup *l, chunk_list *out)
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

/* Make the questions for the chunks from `from` on, as many as each server can
 * answer in one message. */
static void add_questions(fl_lookups *s, fl_query *q, int64_t from)
{
    clear_parts(q);
    q->from = q->to = from;
    for (; q->to < q->chunks.n; q->to++) {
        const chunk *c = &q->chunks.at[q->to];
        query_part *p = &q->parts[c->of->server];
        if (p->question && c->bytes > s->job->max_values - p->bytes)
            break;
        add_question(question_for(q, c->of->server), c);
        p->bytes += c->bytes;
    }
}

static fl_query *make_query(fl_lookups *s, int n, const fl_lookup *lookups)
{
    fl_query *q = begin_query(s);
    for (int i = 0; i < n; i++)
        cut_lookup(s, &lookups[i], &q->chunks);
    add_questions(s, q, 0);
    return q;
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

void fl_received_clear(fl_received_list *l)
{
    for (int64_t i = 0; i < l->n; i++)
        fl_parcel_unref(l->at[i].parcel);
    l->n = 0;
}

static fl_err keep_chunk(const fl_lookups *s, const chunk *c, fl_parcel *parcel,
                         const fl_item *item)
{
    if (item->kind != FL_LOD_TENSOR)
        return fail_answer(s, c);
    if (!c->first) /* the first answer, or the first of a new session */
        fl_received_clear(c->of->kept);
    fl_push(c->of->kept, (fl_received){fl_parcel_ref(parcel), item});
    return FL_OK;
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

/* Copy or keep the values of the answers. A server answers in the order of the
 * request.
 */
static fl_err copy_answers(const fl_lookups *s, fl_query *q)
{
    for (int64_t i = q->from; i < q->to; i++) {
        const chunk *c = &q->chunks.at[i];
        query_part *p = &q->parts[c->of->server];
        const int at = p->read++;
        const fl_item *item =
            p->answer && at < p->answer->n ? &p->answer->item[at] : NULL;
        if (!item || !answers_chunk(item, c))
            return fail_answer(s, c);
        FL_TRY(c->of->kept ? keep_chunk(s, c, p->answer, item)
                           : copy_chunk(s, c, item));
    }
    return FL_OK;
}

/* Wait for what was asked for last, and ask for the rest. */
static fl_err finish_query(fl_lookups *s, fl_query *q, const fl_watch *by)
{
    int64_t fences = 0;
    for (;;) {
        FL_TRY(await_answers(s, q, by));
        int64_t next = q->to;
        if (q->from && q->fences != fences) {
            next = 0; /* earlier chunks are of a lost session */
        } else {
            fences = q->fences;
            fl_link_unlock(s->link);
            const fl_err err = copy_answers(s, q);
            fl_link_lock(s->link);
            FL_TRY(err);
        }
        if (next == q->chunks.n)
            return FL_OK;
        add_questions(s, q, next);
        FL_TRY(fl_link_wait_ready(s->link, by));
        FL_TRY(send_questions(s, q));
    }
}

/* --- asking ahead --- */

static fl_query *find_ticket(fl_lookups *s, uint64_t ticket)
{
    fl_query *q = s->queries;
    while (q && q->ticket != ticket)
        q = q->next;
    return q;
}

/* Forget the oldest queries that nobody has waited for. */
static void limit_tickets(fl_lookups *s)
{
    fl_query *old = s->tickets > TICKETS_MOST
                        ? find_ticket(s, s->tickets - TICKETS_MOST)
                        : NULL;
    if (old)
        end_query(s, old);
}

static uint64_t give_ticket(fl_lookups *s, fl_query *q)
{
    limit_tickets(s);
    q->ticket = ++s->tickets;
    return q->ticket;
}

uint64_t fl_lookups_ask(fl_lookups *s, int n, const fl_lookup *lookups)
{
    fl_query *q = make_query(s, n, lookups);
    if (q->to == q->chunks.n && !send_questions(s, q))
        return give_ticket(s, q);
    end_query(s, q);
    return 0;
}

/* --- rows that come with the pull of a step --- */

uint64_t fl_lookups_ask_by_pull(fl_lookups *s, int n, const fl_lookup *lookups)
{
    fl_query *q = make_query(s, n, lookups);
    bool known = q->to == q->chunks.n;
    for (int64_t i = 0; i < q->chunks.n; i++)
        known &= q->chunks.at[i].bytes > 0;
    if (known) {
        q->way = NEXT_PULL;
        return give_ticket(s, q);
    }
    end_query(s, q);
    return 0;
}

size_t fl_lookups_pull_bytes(const fl_lookups *s, int server)
{
    size_t bytes = 0;
    for (const fl_query *q = s->queries; q; q = q->next)
        bytes += q->way == NEXT_PULL ? q->parts[server].bytes : 0;
    return bytes;
}

void fl_lookups_add_to_pull(fl_lookups *s, int server, fl_parcel *pull)
{
    for (fl_query *q = s->queries; q; q = q->next) {
        query_part *p = &q->parts[server];
        if (q->way != NEXT_PULL || !p->question)
            continue;
        p->read = pull->n;
        for (int i = 0; i < p->question->n; i++)
            fl_parcel_add_item(pull, &p->question->item[i]);
    }
}

void fl_lookups_pull_begins(fl_lookups *s, int64_t round)
{
    for (fl_query *q = s->queries; q; q = q->next)
        if (q->way == NEXT_PULL) {
            q->way = CURRENT_PULL;
            q->round = round;
            q->fences = fl_link_fences(s->link);
        }
}

void fl_lookups_pulled(fl_lookups *s, int server, int64_t round,
                       fl_parcel *values)
{
    for (fl_query *q = s->queries; q; q = q->next) {
        query_part *p = &q->parts[server];
        if (q->way != CURRENT_PULL || q->round != round || !p->question ||
            q->fences != fl_link_fences(s->link))
            continue;
        fl_parcel_unref(p->answer);
        p->answer = fl_parcel_ref(values);
    }
}

/* Whether the rows have come and are still those of the trainer's version. */
static bool are_current(const fl_lookups *s, const fl_query *q)
{
    if (q->way == OWN_REQUESTS)
        return true;
    for (int i = 0; i < q->servers; i++)
        if (q->parts[i].question && !q->parts[i].answer)
            return false;
    return q->round == fl_client_round(fl_link_client(s->link)) &&
           q->fences == fl_link_fences(s->link);
}

bool fl_lookups_wait(fl_lookups *s, const fl_watch *by, uint64_t ticket,
                     fl_err *err)
{
    fl_query *q = ticket ? find_ticket(s, ticket) : NULL;
    if (!q)
        return false;
    q->ticket = 0; /* it is not forgotten during the wait */
    const bool current = are_current(s, q);
    if (current)
        *err = finish_query(s, q, by);
    end_query(s, q);
    return current;
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
    while (s->queries) /* nobody has waited for these */
        end_query(s, s->queries);
    query_free(s->spare);
    fl_map_fini(&s->pieces);
    fl_mem_free(s);
}

fl_err fl_lookups_run(fl_lookups *s, const fl_watch *by, int n,
                      const fl_lookup *lookups)
{
    fl_query *q = make_query(s, n, lookups);
    fl_err err = fl_link_wait_ready(s->link, by);
    if (!err)
        err = send_questions(s, q);
    if (!err)
        err = finish_query(s, q, by);
    end_query(s, q);
    return err;
}

bool fl_lookups_answer(fl_lookups *s, int server, uint64_t tag,
                       fl_parcel *values)
{
    for (fl_query *q = s->queries; q; q = q->next) {
        query_part *p = &q->parts[server];
        if (p->tag != tag)
            continue;
        p->tag = 0;
        fl_parcel_unref(p->answer);
        p->answer = fl_parcel_ref(values);
        return true;
    }
    return false;
}

void fl_lookups_lose(fl_lookups *s)
{
    for (fl_query *q = s->queries; q; q = q->next)
        for (int i = 0; i < q->servers; i++)
            q->parts[i].tag = 0;
}

/* ask.c - what a trainer asks the servers.
 *
 * Values come with the step (what was received before) or are asked for. Each
 * caller has a talk of its own, so that lookups of several threads go on beside
 * each other, and beside pushes.
 *
 * Easy to get wrong: a lost session loses all questions; whoever asked asks
 * again in the next one, and answers are of one session then. */
#include "trainer/trainer_in.h"

/* --- talks, under the lock --- */

static fl_talk *begin_talk(fl_trainer *t)
{
    fl_talk *k = fl_mem_alloc(sizeof *k);
    k->with = fl_mem_alloc((size_t)t->job.servers * sizeof *k->with);
    k->next = t->talks;
    t->talks = k;
    return k;
}

static void clear_questions(const fl_trainer *t, fl_talk *k)
{
    for (int i = 0; i < t->job.servers; i++) {
        fl_parcel_unref(k->with[i].question);
        fl_parcel_unref(k->with[i].answer);
        k->with[i] = (fl_ask){0};
    }
}

static void end_talk(fl_trainer *t, fl_talk *k)
{
    fl_talk **at = &t->talks;
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    clear_questions(t, k);
    fl_mem_free(k->with);
    fl_mem_free(k);
}

void fl_talks_hear(fl_trainer *t, int server, uint64_t tag, fl_parcel *answer)
{
    for (fl_talk *k = t->talks; k; k = k->next) {
        fl_ask *a = &k->with[server];
        if (a->tag != tag)
            continue;
        a->tag = 0;
        fl_parcel_unref(a->answer);
        a->answer = fl_parcel_ref(answer);
        return;
    }
}

void fl_talks_lose(fl_trainer *t)
{
    for (fl_talk *k = t->talks; k; k = k->next)
        for (int i = 0; i < t->job.servers; i++)
            k->with[i].tag = 0;
}

static fl_parcel *question_for(fl_talk *k, int server)
{
    fl_ask *a = &k->with[server];
    if (!a->question)
        a->question = fl_parcel_new();
    return a->question;
}

static bool all_answered(const fl_trainer *t, const void *talk)
{
    const fl_talk *k = talk;
    for (int i = 0; i < t->job.servers; i++)
        if (k->with[i].tag)
            return false;
    return true;
}

static fl_err ask_once(fl_trainer *t, fl_talk *k, const fl_watch *by)
{
    FL_TRY(fl_trainer_wait(t, fl_trainer_is_ready, NULL, by, 0));
    for (int i = 0; i < t->job.servers; i++) {
        fl_ask *a = &k->with[i];
        if (!a->question)
            continue;
        const fl_blob blob = fl_parcel_blob(a->question);
        const fl_err err = fl_client_ask(t->client, i, blob, fl_link_now());
        fl_keeper_parcels.drop(NULL, blob);
        FL_TRY(err);
        a->tag = fl_client_tag(t->client);
    }
    fl_link_flush(t);
    return fl_trainer_wait(t, all_answered, k, by, 0);
}

/* Every server that has a question gets it, all at once. */
static fl_err ask(fl_trainer *t, fl_talk *k, const fl_watch *by)
{
    int64_t fences;
    do {
        fences = t->fences;
        FL_TRY(ask_once(t, k, by));
    } while (fences != t->fences);
    return FL_OK;
}

/* --- what is asked for, in pieces that a message can carry --- */

/* A lookup, or some of its rows, or some elements of the whole variable. */
typedef struct piece {
    const fl_lookup *of;
    int64_t first, n; /* n < 0: the whole */
    size_t bytes;     /* of the answer, at most; 0: not known */
} piece;

typedef FL_VEC(piece) pieces;

static bool is_range(const piece *p)
{
    return p->of->n < 0 && p->n >= 0;
}

static bool is_all(const piece *p)
{
    return p->n == p->of->n;
}

static void cut_lookup(const fl_trainer *t, const fl_lookup *l, pieces *out)
{
    const fl_piece *k = fl_map_get(&t->pieces, l->table);
    const bool whole = l->n < 0;
    if (!k || l->most || (whole && k->first == FL_BY_ID)) {
        fl_push(out, (piece){.of = l, .n = l->n});
        return;
    }
    const fl_shape *s = &k->shape;
    const int64_t all = whole ? fl_shape_numel(s) : l->n;
    const size_t one =
        (whole ? 1 : (size_t)fl_shape_span(s, 1, s->rank)) * sizeof(double);
    const int64_t fit = (int64_t)(fl_trainer_most(t) / (one ? one : 1));
    const int64_t most = fit > 0 ? fit : 1;
    if (all <= most) {
        fl_push(out, (piece){l, 0, l->n, (size_t)all * one});
        return;
    }
    for (int64_t first = 0; first < all; first += most) {
        const int64_t n = all - first < most ? all - first : most;
        fl_push(out, (piece){l, first, n, (size_t)n * one});
    }
}

static void put_question(fl_parcel *to, const piece *p)
{
    const fl_lookup *l = p->of;
    if (l->most)
        fl_parcel_want_ids(to, l->table, l->most, l->n ? l->rows : NULL);
    else if (is_range(p))
        fl_parcel_want_range(to, l->table, p->first, p->n);
    else
        fl_parcel_want(to, l->table, p->n,
                       p->n > 0 ? l->rows + p->first : NULL);
}

/* Questions for as many pieces from `from` on as each server can answer in one
 * message; how far that goes. */
static int64_t put_questions(fl_trainer *t, fl_talk *k, const pieces *all,
                             int64_t from)
{
    int64_t to = from;
    clear_questions(t, k);
    for (; to < all->n; to++) {
        const piece *p = &all->at[to];
        fl_ask *a = &k->with[p->of->server];
        if (a->question && p->bytes > fl_trainer_most(t) - a->bytes)
            break;
        put_question(question_for(k, p->of->server), p);
        a->bytes += p->bytes;
    }
    return to;
}

static bool answers(const fl_item *item, const piece *p)
{
    const fl_lookup *l = p->of;
    if (strcmp(item->name, l->table) || (p->n >= 0 && !item->shape.rank) ||
        item->first != (is_range(p) ? p->first : 0))
        return false;
    if (l->most)
        return item->dtype == FL_I64 && item->shape.rank == 1 &&
               item->shape.dim[0] <= l->most;
    return p->n < 0 || item->shape.dim[0] == p->n;
}

static fl_err no_answer(const fl_trainer *t, const piece *p)
{
    const fl_lookup *l = p->of;
    if (p->n < 0)
        return fl_fail(FL_EPROTO, "%s has sent no \"%s\" when asked for it",
                       t->line[l->server].address, l->table);
    return fl_fail(FL_EPROTO,
                   "%s has not sent the %lld %s of \"%s\" that it was asked "
                   "for",
                   t->line[l->server].address,
                   (long long)(l->most ? l->most : p->n),
                   l->most       ? "ids"
                   : is_range(p) ? "elements"
                                 : "rows",
                   l->table);
}

/* The shape of the whole lookup, of which one piece has come. */
static fl_shape whole_shape(const fl_trainer *t, const piece *p,
                            const fl_item *item)
{
    fl_shape s = item->shape;
    if (is_range(p))
        return ((const fl_piece *)fl_map_get(&t->pieces, p->of->table))->shape;
    s.dim[0] = p->of->n;
    return s;
}

static fl_err take_piece(const fl_trainer *t, const piece *p,
                         const fl_item *item)
{
    fl_tensor *out = p->of->out;
    if (is_all(p))
        return fl_item_tensor(item, out);
    const fl_shape whole = whole_shape(t, p, item);
    if (!p->first)
        FL_TRY(fl_tensor_resize(out, item->dtype, &whole));
    const size_t at = item->data.size / (size_t)p->n * (size_t)p->first;
    if (item->kind != FL_LOD_TENSOR || item->dtype != out->dtype ||
        !fl_shape_equal(&whole, &out->shape) ||
        at + item->data.size > fl_tensor_bytes(out))
        return no_answer(t, p);
    fl_bytes_copy(item->data, 0, (char *)out->data + at, item->data.size);
    return FL_OK;
}

/* The answers stand in the order of the questions. */
static fl_err hand_out(const fl_trainer *t, const fl_talk *talk,
                       const pieces *all, int64_t from, int64_t to)
{
    int *next = fl_mem_alloc((size_t)t->job.servers * sizeof *next);
    fl_err err = FL_OK;
    for (int64_t i = from; i < to && !err; i++) {
        const piece *p = &all->at[i];
        const fl_parcel *came = talk->with[p->of->server].answer;
        const int at = next[p->of->server]++;
        const fl_item *item = came && at < came->n ? &came->item[at] : NULL;
        err =
            item && answers(item, p) ? take_piece(t, p, item) : no_answer(t, p);
    }
    fl_mem_free(next);
    return err;
}

/* Under the lock, which it leaves while values are copied. If a session is lost
 * between two messages all is asked for again: values are of one session. */
static fl_err ask_all(fl_trainer *t, fl_talk *k, const fl_watch *by,
                      const pieces *all)
{
    int64_t fences = 0;
    for (int64_t from = 0; from < all->n;) {
        const int64_t to = put_questions(t, k, all, from);
        FL_TRY(ask(t, k, by));
        if (from && t->fences != fences) {
            from = 0;
            continue;
        }
        fences = t->fences;
        fl_link_unlock(t);
        const fl_err err = hand_out(t, k, all, from, to);
        fl_link_lock(t);
        FL_TRY(err);
        from = to;
    }
    return FL_OK;
}

static fl_err look_up(fl_trainer *t, const fl_watch *by, int n,
                      const fl_lookup *lookups)
{
    pieces all = {0};
    for (int i = 0; i < n; i++)
        cut_lookup(t, &lookups[i], &all);
    fl_talk *k = begin_talk(t);
    const fl_err err = ask_all(t, k, by, &all);
    end_talk(t, k);
    fl_vec_fini(&all);
    return err;
}

fl_err fl_trainer_lookup(fl_trainer *t, const fl_watch *by, int n,
                         const fl_lookup *lookups)
{
    for (int i = 0; i < n; i++)
        FL_TRY(fl_trainer_check_server(t, lookups[i].table, lookups[i].server));
    FL_TRY(fl_trainer_enter(t, by));
    fl_err err = fl_trainer_step_if_sent(t, by);
    if (!err)
        err = look_up(t, by, n, lookups);
    return fl_trainer_exit(t, err);
}

/* --- values by name --- */

/* What no message can carry beside the others is asked for when it is wanted.
 */
static void learn(fl_trainer *t, fl_connection *l, const char *name,
                  size_t bytes)
{
    if (bytes > fl_trainer_most(t) - l->wanted_bytes)
        return;
    const char *own = fl_arena_strdup(t->arena, name);
    fl_push(&l->wanted, (fl_wanted){.name = own, .taken = true});
    fl_map_put(&l->place, own, (void *)(uintptr_t)l->wanted.n);
    l->wanted_bytes += bytes;
    l->learned = true;
}

/* What the last step brought, once. NULL: nothing. */
static const fl_item *find_pulled(const fl_connection *l, const char *name)
{
    const int64_t place = (int64_t)(uintptr_t)fl_map_get(&l->place, name);
    if (!place || !l->pulled || place > l->pulled->n ||
        l->wanted.at[place - 1].taken)
        return NULL;
    l->wanted.at[place - 1].taken = true;
    const fl_item *item = &l->pulled->item[place - 1];
    return strcmp(item->name, name) ? NULL : item;
}

/* Under the lock: what was pulled, with a share of its parcel; or into `out`,
 * if that is NULL. */
static fl_err receive(fl_trainer *t, const fl_watch *by, const fl_lookup *k,
                      fl_parcel **parcel, const fl_item **item)
{
    fl_connection *l = &t->line[k->server];
    FL_TRY(fl_trainer_step_if_sent(t, by));
    *item = find_pulled(l, k->table);
    if (*item) {
        *parcel = fl_parcel_ref(l->pulled);
        return FL_OK;
    }
    FL_TRY(look_up(t, by, 1, k));
    if (t->stepped && !fl_map_get(&l->place, k->table))
        learn(t, l, k->table, fl_tensor_bytes(k->out));
    return FL_OK;
}

fl_err fl_trainer_recv(fl_trainer *t, const fl_watch *by, int server,
                       const char *name, fl_tensor *out)
{
    const fl_lookup whole = {
        .server = server, .table = name, .n = -1, .out = out};
    fl_parcel *parcel = NULL;
    const fl_item *item = NULL;
    FL_TRY(fl_trainer_check_server(t, name, server));
    FL_TRY(fl_trainer_enter(t, by));
    fl_err err = fl_trainer_exit(t, receive(t, by, &whole, &parcel, &item));
    if (!err && item)
        err = fl_item_tensor(item, out);
    fl_parcel_unref(parcel);
    return err;
}

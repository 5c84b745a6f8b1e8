/* trainer_ask.c - what a trainer asks the servers.
 *
 * Values come with the step (what was received before) or are asked for. Each
 * caller has a talk of its own, so that lookups of several threads go on beside
 * each other, and beside pushes.
 *
 * Easy to get wrong: a lost session loses all questions; whoever asked asks
 * again in the next one, and answers are of one session then. */
#include "dist/trainer_in.h"

/* --- talks, under the lock --- */

static fl_talk *begin_talk(fl_trainer *t)
{
    fl_talk *k = fl_mem_alloc(sizeof *k);
    k->with = fl_mem_alloc((size_t)t->job.servers * sizeof *k->with);
    k->next = t->talks;
    t->talks = k;
    return k;
}

static void end_talk(fl_trainer *t, fl_talk *k)
{
    fl_talk **at = &t->talks;
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    for (int i = 0; i < t->job.servers; i++) {
        fl_parcel_unref(k->with[i].question);
        fl_parcel_unref(k->with[i].answer);
    }
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

/* --- values by name --- */

static void learn(fl_trainer *t, fl_line *l, const char *name)
{
    const char *own = fl_arena_strdup(t->arena, name);
    fl_push(&l->wanted, (fl_wanted){.name = own, .taken = true});
    fl_map_put(&l->place, own, (void *)(uintptr_t)l->wanted.n);
    l->learned = true;
}

/* What the last step brought, once. NULL: nothing. */
static const fl_item *find_pulled(const fl_line *l, const char *name)
{
    const int64_t place = (int64_t)(uintptr_t)fl_map_get(&l->place, name);
    if (!place || !l->pulled || place > l->pulled->n ||
        l->wanted.at[place - 1].taken)
        return NULL;
    l->wanted.at[place - 1].taken = true;
    const fl_item *item = &l->pulled->item[place - 1];
    return strcmp(item->name, name) ? NULL : item;
}

/* Own: *parcel, which holds the item. */
static fl_err get(fl_trainer *t, fl_talk *k, const fl_watch *by, fl_line *l,
                  const char *name, fl_parcel **parcel, const fl_item **item)
{
    const int server = (int)(l - t->line);
    FL_TRY(fl_trainer_step_if_sent(t, by));
    *item = find_pulled(l, name);
    if (*item) {
        *parcel = fl_parcel_ref(l->pulled);
        return FL_OK;
    }
    fl_parcel_want(question_for(k, server), name, -1, NULL);
    FL_TRY(ask(t, k, by));
    *item = fl_parcel_find(k->with[server].answer, name);
    if (!*item)
        return fl_fail(FL_EPROTO, "%s has sent no \"%s\" when asked for it",
                       l->address, name);
    *parcel = fl_parcel_ref(k->with[server].answer);
    if (t->stepped && !fl_map_get(&l->place, name))
        learn(t, l, name);
    return FL_OK;
}

fl_err fl_trainer_recv(fl_trainer *t, const fl_watch *by, int server,
                       const char *name, fl_tensor *out)
{
    fl_parcel *parcel = NULL;
    const fl_item *item = NULL;
    FL_TRY(fl_trainer_check_server(t, name, server));
    FL_TRY(fl_trainer_enter(t, by));
    fl_talk *k = begin_talk(t);
    fl_err err = get(t, k, by, &t->line[server], name, &parcel, &item);
    end_talk(t, k);
    err = fl_trainer_exit(t, err);
    if (!err)
        err = fl_item_tensor(item, out);
    fl_parcel_unref(parcel);
    return err;
}

/* --- rows of tables --- */

static bool answers(const fl_item *item, const fl_lookup *k)
{
    if (strcmp(item->name, k->table) || !item->shape.rank)
        return false;
    if (k->most)
        return item->dtype == FL_I64 && item->shape.rank == 1 &&
               item->shape.dim[0] <= k->most;
    return k->n < 0 || item->shape.dim[0] == k->n;
}

/* The answers stand in the order of the questions. */
static fl_err hand_out(fl_trainer *t, const fl_talk *talk, int n,
                       const fl_lookup *lookups)
{
    int *next = fl_mem_alloc((size_t)t->job.servers * sizeof *next);
    fl_err err = FL_OK;
    for (int i = 0; i < n && !err; i++) {
        const fl_lookup *k = &lookups[i];
        const fl_parcel *p = talk->with[k->server].answer;
        const int at = next[k->server]++;
        const fl_item *item = p && at < p->n ? &p->item[at] : NULL;
        err = item && answers(item, k)
                  ? fl_item_tensor(item, k->out)
                  : fl_fail(FL_EPROTO,
                            "%s has not sent the %lld %s of \"%s\" that it was "
                            "asked for",
                            t->line[k->server].address,
                            (long long)(k->most ? k->most : k->n),
                            k->most ? "ids" : "rows", k->table);
    }
    fl_mem_free(next);
    return err;
}

static fl_err look_up(fl_trainer *t, fl_talk *k, const fl_watch *by, int n,
                      const fl_lookup *lookups)
{
    FL_TRY(fl_trainer_step_if_sent(t, by));
    for (int i = 0; i < n; i++) {
        const fl_lookup *l = &lookups[i];
        fl_parcel *to = question_for(k, l->server);
        if (l->most)
            fl_parcel_want_ids(to, l->table, l->most, l->n ? l->rows : NULL);
        else
            fl_parcel_want(to, l->table, l->n, l->rows);
    }
    return ask(t, k, by);
}

fl_err fl_trainer_lookup(fl_trainer *t, const fl_watch *by, int n,
                         const fl_lookup *lookups)
{
    for (int i = 0; i < n; i++)
        FL_TRY(fl_trainer_check_server(t, lookups[i].table, lookups[i].server));
    FL_TRY(fl_trainer_enter(t, by));
    fl_talk *k = begin_talk(t);
    fl_err err = fl_trainer_exit(t, look_up(t, k, by, n, lookups));
    if (!err)
        err = hand_out(t, k, n, lookups);
    fl_link_lock(t);
    end_talk(t, k);
    return fl_trainer_exit(t, err);
}

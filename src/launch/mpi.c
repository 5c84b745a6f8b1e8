/* SPDX-License-Identifier: Apache-2.0 */
/* mpi.c - launchers that mpirun has started agree on one job.
 *
 * Each rank of MPI is a launcher for its host. They tell each other over MPI
 * which ports they hold, and rank 0 gives all of them the key of a collective
 * job and a certificate. After that MPI is not used any more: the processes
 * that the launchers start are not MPI programs. Two ranks may be on one host,
 * since each holds ports of its own. */
#include "launch/launch.h"

#include "base/certs.h"
#include "base/flag.h"
#include "base/str.h"
#include "cluster/role.h"
#include "collective/backend.h"

#include <stdio.h>

enum {
    CARD = 8192, /* size in bytes of the message with the endpoints of a rank */
    SECRET = 16384, /* bytes of key and certificate */
    CERTIFICATE_DAYS = 3650
};

/* Gather the endpoints of all ranks, in their order. Those of this rank are
 * already in the buffer. */
static fl_err gather_endpoints(fl_launch *l, const fl_backend *b)
{
    const int64_t own = l->endpoints.n;
    size_t *at = fl_arena_alloc(l->arena, (size_t)(l->nodes + 1) * sizeof *at);
    char *cards = fl_arena_alloc(l->arena, (size_t)l->nodes * CARD);
    fl_str card = {0};
    for (int i = 0; i <= l->nodes; i++)
        at[i] = (size_t)i * CARD;
    for (int64_t i = 0; i < own; i++)
        fl_str_printf(&card, "%s%s", i ? "," : "", l->endpoints.at[i]);
    const bool fits = card.n < CARD;
    snprintf(cards + at[l->node], CARD, "%s", card.at);
    fl_str_fini(&card);
    if (!fits)
        return fl_fail(FL_EINVAL,
                       "launch: the addresses of %lld processes of rank %d "
                       "take more than %d bytes; start fewer on each rank",
                       (long long)own, l->node, CARD);
    FL_TRY(b->all_gather(b->self, cards, at));
    l->endpoints.n = 0;
    for (int rank = 0; rank < l->nodes; rank++) {
        char *rest = cards + at[rank];
        int64_t n = 0;
        for (char *one; (one = strtok_r(rest, ",", &rest)); n++)
            fl_push(&l->endpoints, one);
        if (n != own)
            return fl_fail(FL_EINVAL,
                           "launch: rank %d has %d ports and rank %d has %d; "
                           "give all ranks the same flags",
                           l->node, (int)own, rank, (int)n);
    }
    for (int64_t i = 0; i < l->held.n; i++)
        l->held.at[i].at += l->node * (int)own;
    return FL_OK;
}

/* The hosts of all endpoints: "a,b". */
static const char *hosts_of(fl_launch *l)
{
    fl_str s = {0};
    for (int64_t i = 0; i < l->endpoints.n; i++) {
        const char *e = l->endpoints.at[i];
        fl_str_printf(&s, "%s%.*s", i ? "," : "", (int)(strrchr(e, ':') - e),
                      e);
    }
    const char *text = fl_arena_strdup(l->arena, s.at ? s.at : "");
    fl_str_fini(&s);
    return text;
}

/* The message of rank 0: job key, certificate, its private key, authority, each
 * with a NUL after it. */
static fl_err make_secrets(fl_launch *l, fl_str *out)
{
    char *certificate = NULL, *key = NULL;
    fl_ca *ca = NULL;
    fl_str_bytes(out, l->key ? l->key : "", (l->key ? strlen(l->key) : 0) + 1);
    if (!l->opts->insecure && !fl_flag_text("FLUID_TLS_CERT")) {
        FL_TRY(fl_ca_new(&ca));
        const fl_err err =
            fl_ca_issue(ca, hosts_of(l), CERTIFICATE_DAYS, &certificate, &key);
        if (err) {
            fl_ca_free(ca);
            return err;
        }
        fl_str_bytes(out, certificate, strlen(certificate) + 1);
        fl_str_bytes(out, key, strlen(key) + 1);
        fl_str_bytes(out, fl_ca_pem(ca), strlen(fl_ca_pem(ca)) + 1);
    }
    fl_mem_free(certificate);
    fl_mem_free(key);
    fl_ca_free(ca);
    return FL_OK;
}

static fl_err share_secrets(fl_launch *l, const fl_backend *b)
{
    char *all = fl_arena_alloc(l->arena, SECRET);
    fl_str made = {0};
    fl_err err = FL_OK;
    if (!l->node)
        err = make_secrets(l, &made);
    if (!err && made.n >= SECRET)
        err = fl_fail(FL_EINVAL,
                      "launch: the certificate for %d ranks takes %zu bytes, "
                      "at most %d can be sent; use fewer ranks, or --insecure",
                      l->nodes, made.n, SECRET - 1);
    if (!err && made.n)
        memcpy(all, made.at, made.n);
    fl_str_fini(&made);
    if (err)
        return err;
    FL_TRY(b->broadcast(b->self, 0, all, SECRET));
    const char *at = all;
    l->key = *at ? fl_arena_strdup(l->arena, at) : NULL;
    for (int i = 0; i < FL_TLS_FILES; i++) {
        at += strlen(at) + 1;
        l->tls[i] = *at ? fl_arena_strdup(l->arena, at) : NULL;
    }
    l->with_tls = l->tls[0] != NULL;
    return FL_OK;
}

fl_err fl_launch_join_mpi(fl_launch *l)
{
    const fl_launch_opts *o = l->opts;
    fl_mesh_opts m = {0};
    fl_backend b;
    FL_TRY(fl_role_mpi(&m.rank, &m.world));
    if (o->cluster_node_ips || (o->endpoints && *o->endpoints) || o->hosts)
        return fl_fail(FL_EINVAL, "launch: --mpi takes the hosts from mpirun; "
                                  "leave out --hosts, --cluster_node_ips and "
                                  "--endpoints");
    FL_TRY(fl_launch_ports(l));
    l->nodes = m.world;
    l->node = m.rank;
    FL_TRY(fl_backend_plugin("mpi", &m, &b));
    fl_err err = gather_endpoints(l, &b);
    if (!err)
        err = share_secrets(l, &b);
    if (!err)
        b.free(b.self); /* after a failure MPI ends the other ranks, too */
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - sends a health check and reads the answer frame by frame.
 *
 *     request  preface, SETTINGS, HEADERS 1, DATA 1     answer  SETTINGS first,
 *              frame := length (3) kind flags stream (4) ..     then DATA 1
 *
 * An answer that ends without DATA is a refusal, so its headers need not be
 * decoded. */
#include "net/probe.h"

#include <stdint.h>
#include <string.h>

enum {
    DATA = 0,
    HEADERS = 1,
    RESET = 3,
    SETTINGS = 4,
    GOAWAY = 7,
    END_STREAM = 1,
    END_HEADERS = 4,
    HEAD = 9,            /* bytes of a frame before its body */
    MOST = 1 << 14,      /* bytes of a body, the default limit of HTTP/2 */
    STATUS = HEAD + 5,   /* offset of the message, after its own head */
    LOOKED_AT = 5 + 2,   /* bytes of a body that are kept */
    STATUS_KEY = 1 << 3, /* HealthCheckResponse.status, a varint */
    SERVING = 1,
};

/* --- the request --- */

typedef struct request {
    unsigned char *at;
    size_t n;
} request;

static void put_bytes(request *r, const void *bytes, size_t n)
{
    memcpy(r->at + r->n, bytes, n);
    r->n += n;
}

static void put_frame(request *r, int kind, int flags, int stream,
                      const void *body, size_t n)
{
    const unsigned char head[HEAD] = {0,
                                      (unsigned char)(n >> 8),
                                      (unsigned char)n,
                                      (unsigned char)kind,
                                      (unsigned char)flags,
                                      0,
                                      0,
                                      0,
                                      (unsigned char)stream};
    put_bytes(r, head, sizeof head);
    put_bytes(r, body, n);
}

/* Append a header text that is neither indexed nor compressed. */
static void put_text(request *r, const char *text)
{
    const unsigned char n = (unsigned char)strlen(text);
    put_bytes(r, &n, 1);
    put_bytes(r, text, n);
}

size_t fl_probe_request(unsigned char out[FL_PROBE_BYTES])
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    static const char *const headers[][2] = {
        {":method", "POST"},
        {":scheme", "http"},
        {":path", "/grpc.health.v1.Health/Check"},
        {":authority", "fluid"},
        {"te", "trailers"},
        {"content-type", "application/grpc"},
    };
    /* not compressed, 14 bytes: HealthCheckRequest.service */
    static const char message[] = "\0\0\0\0\016\012\014fluid.Server";
    unsigned char head[FL_PROBE_BYTES / 2];
    request h = {head, 0}, r = {out, 0};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        put_bytes(&h, "", 1);
        put_text(&h, headers[i][0]);
        put_text(&h, headers[i][1]);
    }
    put_bytes(&r, preface, sizeof preface - 1);
    put_frame(&r, SETTINGS, 0, 0, "", 0);
    put_frame(&r, HEADERS, END_HEADERS, 1, h.at, h.n);
    put_frame(&r, DATA, END_STREAM, 1, message, sizeof message - 1);
    return r.n;
}

/* --- the answer --- */

static size_t body_size(const fl_probe *p)
{
    return (size_t)p->frame[0] << 16 | (size_t)p->frame[1] << 8 | p->frame[2];
}

/* How many bytes of the frame are needed to decide what it means. */
static size_t wanted(const fl_probe *p)
{
    const size_t body = p->n < HEAD ? 0 : body_size(p);
    return HEAD + (body < LOOKED_AT ? body : LOOKED_AT);
}

static fl_probe_answer judge_answer(fl_probe *p)
{
    const int kind = p->frame[3], flags = p->frame[4];
    const bool ours = p->frame[8] == 1; /* our only stream is 1 */
    if ((!p->greeted && kind != SETTINGS) || body_size(p) > MOST)
        return FL_PROBE_FOREIGN;
    p->greeted = true;
    if (ours && kind == DATA)
        return body_size(p) < LOOKED_AT || p->frame[STATUS] != STATUS_KEY
                   ? FL_PROBE_FOREIGN
               : p->frame[STATUS + 1] == SERVING ? FL_PROBE_SERVES
                                                 : FL_PROBE_STARTS;
    if ((ours && (kind == RESET || (kind == HEADERS && flags & END_STREAM))) ||
        kind == GOAWAY)
        return FL_PROBE_FOREIGN;
    return FL_PROBE_MORE;
}

fl_probe_answer fl_probe_hear(fl_probe *p, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < n; i++) {
        if (p->skip) {
            p->skip--;
            continue;
        }
        p->frame[p->n++] = at[i];
        if (p->n < wanted(p))
            continue;
        const fl_probe_answer answer = judge_answer(p);
        if (answer)
            return answer;
        p->skip = body_size(p) - (p->n - HEAD);
        p->n = 0;
    }
    return FL_PROBE_MORE;
}

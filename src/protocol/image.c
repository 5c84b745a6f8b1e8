/* SPDX-License-Identifier: Apache-2.0 */
/* image.c - numbers, texts and lists of an image. */
#include "protocol/image.h"

#include "base/crc.h"

#include <string.h>

enum {
    CRC = 4,    /* bytes */
    DIGITS = 10 /* bytes of a number at most */
};

static const char magic[4] = {'F', 'L', 'I', 'M'};

/* Of the fields; another one is refused. A snapshot has to be restored by later
 * versions, so its format does not change with that of a state. */
static const uint64_t formats[] = {
    [FL_IMAGE_SERVER] = 4, [FL_IMAGE_COORD] = 3, [FL_IMAGE_CUT] = 3};

/* --- fields --- */

static void write_word(fl_str *to, uint64_t word)
{
    unsigned char digit[DIGITS];
    size_t n = 0;
    for (; word >= 128; word >>= 7)
        digit[n++] = (unsigned char)(word | 128);
    digit[n++] = (unsigned char)word;
    fl_str_bytes(to, digit, n);
}

static uint64_t read_word(fl_image *im)
{
    uint64_t word = 0;
    for (int shift = 0; shift < 7 * DIGITS && im->at < im->end; shift += 7) {
        const uint64_t digit = *im->at++;
        if (shift == 63 && digit > 1)
            break;
        word |= (digit & 127) << shift;
        if (digit < 128)
            return word;
    }
    im->bad = true;
    return 0;
}

void fl_image_word(fl_image *im, uint64_t *word)
{
    if (im->to)
        write_word(im->to, *word);
    else
        *word = read_word(im);
}

void fl_image_any(fl_image *im, int64_t *n)
{
    uint64_t word = (uint64_t)*n;
    fl_image_word(im, &word);
    *n = (int64_t)word;
}

void fl_image_count(fl_image *im, int64_t *n, int64_t least, int64_t most)
{
    uint64_t word = (uint64_t)*n - (uint64_t)least;
    fl_image_word(im, &word);
    if (im->to)
        return;
    im->bad = im->bad || word > (uint64_t)most - (uint64_t)least;
    *n = im->bad ? least : (int64_t)(word + (uint64_t)least);
}

void fl_image_int(fl_image *im, int *n, int least, int most)
{
    int64_t wide = *n;
    fl_image_count(im, &wide, least, most);
    *n = (int)wide;
}

void fl_image_bool(fl_image *im, bool *b)
{
    int n = *b;
    fl_image_int(im, &n, 0, 1);
    *b = n;
}

void fl_image_id(fl_image *im, fl_id *id)
{
    fl_image_word(im, &id->hi);
    fl_image_word(im, &id->lo);
}

void fl_image_text(fl_image *im, char *buf, size_t size)
{
    int64_t n = im->to ? (int64_t)strlen(buf) : 0;
    fl_image_count(im, &n, 0, (int64_t)size - 1);
    if (im->to) {
        fl_str_bytes(im->to, buf, (size_t)n);
        return;
    }
    im->bad =
        im->bad || n > im->end - im->at || (n && memchr(im->at, 0, (size_t)n));
    if (im->bad)
        n = 0;
    memcpy(buf, im->at, (size_t)n);
    buf[n] = 0;
    im->at += n;
}

void fl_image_string(fl_image *im, char **text, size_t size)
{
    int64_t n = im->to && *text ? (int64_t)strlen(*text) : 0;
    fl_image_count(im, &n, 0, (int64_t)size - 1);
    if (im->to) {
        fl_str_bytes(im->to, *text, (size_t)n);
        return;
    }
    im->bad =
        im->bad || n > im->end - im->at || (n && memchr(im->at, 0, (size_t)n));
    *text = NULL;
    if (im->bad || !n)
        return;
    *text = fl_mem_alloc((size_t)n + 1);
    memcpy(*text, im->at, (size_t)n);
    im->at += n;
}

void fl_image_window(fl_image *im, fl_window *w)
{
    fl_image_count(im, &w->base, 0, INT64_MAX - FL_WINDOW);
    fl_image_word(im, &w->ahead);
}

void fl_image_leave(fl_image *im, fl_leave *l, int trainers)
{
    int why = (int)l->why;
    fl_image_int(im, &l->rank, 0, trainers - 1);
    fl_image_id(im, &l->session);
    fl_image_any(im, &l->view);
    fl_image_int(im, &why, FL_LEFT_LEASE, FL_LEFT_DONE);
    fl_image_any(im, &l->ago);
    l->why = (fl_left)why;
}

void fl_image_elements(fl_image *im, void **at, int64_t *n, int64_t *cap,
                       size_t size, int64_t most)
{
    fl_image_count(im, n, 0, most);
    if (im->to)
        return;
    im->bad = im->bad || *n > im->end - im->at; /* a byte each at least */
    if (im->bad)
        *n = 0;
    fl_vec_reserve(at, cap, *n, size);
    if (*n)
        memset(*at, 0, (size_t)*n * size);
}

void fl_image_members(fl_image *im, fl_member **at, int *n, int trainers)
{
    fl_image_int(im, n, 0, trainers);
    if (!im->to)
        *at = fl_mem_alloc((size_t)(*n + 1) * sizeof **at);
    for (int i = 0; i < *n; i++) {
        fl_member *m = &(*at)[i];
        fl_image_int(im, &m->rank, i ? m[-1].rank + 1 : 0, trainers - 1);
        fl_image_id(im, &m->session);
        fl_image_any(im, &m->g);
    }
}

/* --- the whole --- */

static void visit_head(fl_image *im, uint64_t head[6])
{
    for (int i = 0; i < 6; i++)
        fl_image_word(im, &head[i]);
}

fl_image fl_image_begin(fl_str *to, fl_image_kind kind, const fl_job *job,
                        int index)
{
    fl_image im = {.to = to, .start = to->n};
    uint64_t head[6] = {kind,       formats[kind],   job->id.hi,
                        job->id.lo, (uint64_t)index, (uint64_t)job->trainers};
    fl_str_bytes(to, magic, sizeof magic);
    visit_head(&im, head);
    return im;
}

void fl_image_finish(fl_image *im)
{
    const uint32_t crc =
        fl_crc32c(0, im->to->at + im->start, im->to->n - im->start);
    unsigned char byte[CRC];
    for (int i = 0; i < CRC; i++)
        byte[i] = (unsigned char)(crc >> 8 * i);
    fl_str_bytes(im->to, byte, CRC);
}

static bool has_its_crc(const unsigned char *bytes, size_t n)
{
    uint32_t crc = 0;
    for (int i = 0; i < CRC; i++)
        crc |= (uint32_t)bytes[n - CRC + (size_t)i] << 8 * i;
    return crc == fl_crc32c(0, bytes, n - CRC);
}

fl_err fl_image_open(fl_image *im, const void *bytes, size_t n,
                     fl_image_kind kind, const fl_job *job, int index)
{
    uint64_t head[6] = {0};
    if (n < sizeof magic + CRC || memcmp(bytes, magic, sizeof magic))
        return fl_fail(FL_EPROTO,
                       "image: its %zu bytes do not begin like an image", n);
    if (!has_its_crc(bytes, n))
        return fl_fail(FL_EPROTO,
                       "image: its checksum is wrong, so it is damaged");
    *im = (fl_image){.at = (const unsigned char *)bytes + sizeof magic,
                     .end = (const unsigned char *)bytes + n - CRC};
    visit_head(im, head);
    if (im->bad || head[0] != (uint64_t)kind)
        return fl_fail(FL_EPROTO, "image: its kind is %llu, expected %d",
                       (unsigned long long)head[0], (int)kind);
    if (head[1] != formats[kind])
        return fl_fail(
            FL_EPROTO,
            "image: its format is %llu, this version of Fluid reads %llu",
            (unsigned long long)head[1], (unsigned long long)formats[kind]);
    if (head[2] != job->id.hi || head[3] != job->id.lo ||
        head[4] != (uint64_t)index || head[5] != (uint64_t)job->trainers)
        return fl_fail(
            FL_EPROTO,
            "image: it is of server %llu of job %016llx%016llx with %llu "
            "trainers; this is server %d of job %016llx%016llx "
            "with %d",
            (unsigned long long)head[4], (unsigned long long)head[2],
            (unsigned long long)head[3], (unsigned long long)head[5], index,
            (unsigned long long)job->id.hi, (unsigned long long)job->id.lo,
            job->trainers);
    return FL_OK;
}

fl_err fl_image_check(const fl_image *im)
{
    if (im->bad)
        return fl_fail(FL_EPROTO,
                       "image: a field is out of range, so it is damaged");
    if (im->at != im->end)
        return fl_fail(FL_EPROTO,
                       "image: %td bytes follow its end, so it is damaged",
                       im->end - im->at);
    return FL_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* criteo.c - lines of a label, 13 numbers and 26 categories, with tabs between.
 *
 *     0 \t 1 \t \t 3 ... \t 68fd1e64 \t 80e26c9b ... \n
 *
 * A number becomes (number - least) / range, an empty one 0. A category becomes
 * the hash of its column number and its text, modulo dim. The results have the
 * same bits as those of the Python reader of Fluid's click model. As there, the
 * last category of a line that ends with CRLF includes the carriage return. */
#include "data/criteo.h"

#include "data/number.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    FIELDS = 1 + FL_CRITEO_NUMBERS + FL_CRITEO_CATEGORIES,
};

static const double least[FL_CRITEO_NUMBERS] = {0, -3};
static const double range[FL_CRITEO_NUMBERS] = {
    20, 603, 100, 50, 64000, 500, 100, 50, 500, 10, 10, 10, 50,
};

/* --- fields --- */

static fl_err bad_field(const fl_line *l, int i, fl_flaw *flaw,
                        const char *what)
{
    char word[FL_WORD_TEXT];
    const uint32_t start = i ? l->end[i - 1] + 1 : l->start;
    return fl_flaw_set(flaw, start, "field %d is \"%s\", expected %s", i + 1,
                       fl_word_text(l->text + start, l->end[i] - start, word),
                       what);
}

static inline bool read_number(const char *p, size_t n, double *out)
{
    uint64_t whole;
    if (n - 1 < 8 && fl_digits8(p, n, &whole)) {
        *out = (double)whole;
        return true;
    }
    return fl_f64_any(p, n, out);
}

static inline fl_err read_category(const fl_criteo_format *f, const fl_line *l,
                                   int k, int64_t *out, fl_flaw *flaw)
{
    const int i = 1 + FL_CRITEO_NUMBERS + k;
    const uint32_t start = l->end[i - 1] + 1;
    const size_t n = l->end[i] - start;
    if (!n)
        *out = f->empty[k];
    else if (!f->hash->id(f->hash->first + k, l->text + start, n, &f->dim, out))
        return bad_field(l, i, flaw, "UTF-8 of at most 1024 bytes");
    return FL_OK;
}

/* Most categories have 8 characters; these are hashed several at a time. */
static fl_err read_categories(const fl_criteo_format *f, const fl_line *l,
                              int64_t *out, fl_flaw *flaw)
{
    int n = 0, column[FL_HASH_MANY], number[FL_HASH_MANY];
    uint64_t text[FL_HASH_MANY];
    int64_t id[FL_HASH_MANY];
    for (int k = 0; k < FL_CRITEO_CATEGORIES; k++) {
        const uint32_t *end = &l->end[1 + FL_CRITEO_NUMBERS + k];
        text[n] = fl_word(l->text + end[-1] + 1);
        column[n] = k;
        number[n] = f->hash->first + k;
        if (f->hash->eights && *end - end[-1] == 9 &&
            !(text[n] & 0x8080808080808080))
            n++;
        else
            FL_TRY(read_category(f, l, k, &out[k], flaw));
    }
    if (n)
        f->hash->eights(n, number, text, &f->dim, id);
    for (int i = 0; i < n; i++)
        out[column[i]] = id[i];
    return FL_OK;
}

static inline fl_err read_scaled(const fl_line *l, int k, double *out,
                                 fl_flaw *flaw)
{
    double x;
    const int i = 1 + k;
    const uint32_t start = l->end[i - 1] + 1;
    const size_t n = l->end[i] - start;
    *out = 0;
    if (!n)
        return FL_OK;
    if (!read_number(l->text + start, n, &x))
        return bad_field(l, i, flaw, "a number or nothing");
    *out = (x - least[k]) / range[k];
    return FL_OK;
}

fl_err fl_criteo_read(const fl_criteo_format *f, const fl_line *l,
                      fl_criteo_row *row, fl_flaw *flaw)
{
    if (l->n != FIELDS)
        return fl_flaw_set(flaw, l->start,
                           "%lld fields, expected %d: a label, %d numbers and "
                           "%d categories with tabs between them",
                           (long long)l->n, FIELDS, FL_CRITEO_NUMBERS,
                           FL_CRITEO_CATEGORIES);
    if (!fl_parse_i64(l->text + l->start, l->end[0] - l->start, &row->label))
        return bad_field(l, 0, flaw, "a label: a whole number");
    for (int k = 0; k < FL_CRITEO_NUMBERS; k++)
        FL_TRY(read_scaled(l, k, &row->number[k], flaw));
    return read_categories(f, l, row->category, flaw);
}

/* --- rows of a batch --- */

/* The float that strtof reads from the text that Python writes for x. If x is
 * exactly between two floats, the two roundings could differ, so the text is
 * really written and read. */
static float as_float(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x1fffffff) != 0x10000000)
        return (float)x;
    char text[FL_F64_TEXT + FL_TEXT_SLACK];
    float out = 0;
    return fl_f32_any(text, fl_f64_text(x, text), &out) ? out : (float)x;
}

static fl_err put_id(fl_batch *b, const fl_schema_slot *s, int64_t id)
{
    if (s->column < 0)
        return FL_OK;
    fl_column *c = &b->column[s->column];
    if (c->n == c->cap)
        FL_TRY(fl_column_grow(b, s->column, 1));
    c->i64[c->n++] = id;
    return FL_OK;
}

static fl_err criteo_row(const fl_format *self, const fl_line *l, fl_batch *b,
                         fl_flaw *flaw)
{
    fl_criteo_row row;
    const fl_schema_slot *s = b->schema->slot;
    FL_TRY(fl_criteo_read((const fl_criteo_format *)self, l, &row, flaw));
    if (s->column >= 0) {
        fl_column *c = &b->column[s->column];
        FL_TRY(fl_column_grow(b, s->column, FL_CRITEO_NUMBERS));
        for (int i = 0; i < FL_CRITEO_NUMBERS; i++)
            c->f32[c->n++] = as_float(row.number[i]);
    }
    for (int i = 0; i < FL_CRITEO_CATEGORIES; i++)
        FL_TRY(put_id(b, &s[1 + i], row.category[i]));
    return put_id(b, &s[FL_CRITEO_SLOTS - 1], row.label);
}

/* --- settings --- */

fl_err fl_criteo_init(fl_criteo_format *f, const fl_criteo *how)
{
    const char *name = how->hash ? how->hash : "python";
    *f = (fl_criteo_format){
        .format = {FL_SPLIT_TABS, criteo_row},
        .hash = fl_hash_find(name),
    };
    if (how->dim < 1)
        return fl_fail(FL_EINVAL, "criteo: dim is %lld, expected 1 or more",
                       (long long)how->dim);
    if (!f->hash)
        return fl_fail(FL_EINVAL,
                       "criteo: no hash is called \"%s\"; there are "
                       "python, crc32 and fnv",
                       name);
    static const char nothing[FL_TEXT_SLACK];
    f->dim = fl_modulus_of(how->dim);
    for (int k = 0; k < FL_CRITEO_CATEGORIES; k++)
        f->hash->id(f->hash->first + k, nothing, 0, &f->dim, &f->empty[k]);
    return FL_OK;
}

fl_err fl_criteo_check(const fl_schema *s)
{
    bool ok = s->n == FL_CRITEO_SLOTS && s->slot[0].dtype == FL_F32 &&
              (s->slot[0].column < 0 || s->slot[0].width == FL_CRITEO_NUMBERS ||
               !s->slot[0].width);
    for (int i = 1; i < s->n && ok; i++)
        ok = s->slot[i].dtype == FL_I64 && s->slot[i].width <= 1;
    if (ok)
        return FL_OK;
    return fl_fail(FL_EINVAL,
                   "criteo: the %d slots that were set are not those of a "
                   "Criteo line: 13 floats, 26 ids and a label",
                   s->n);
}

/* The next word of the command. Words are separated by blanks and '='. "":
 * there are no more. */
static const char *next_word(const char **command, char word[FL_HASH_NAME + 8])
{
    const char *p = *command + strspn(*command, " \t=");
    const size_t n = strcspn(p, " \t=");
    snprintf(word, FL_HASH_NAME + 8, "%.*s", (int)n, p);
    *command = p + n;
    return word;
}

bool fl_criteo_command(const char *command, fl_criteo *how,
                       char name[FL_HASH_NAME])
{
    static const char *const start[] = {"paddle", "read", "criteo"};
    char word[FL_HASH_NAME + 8], value[FL_HASH_NAME + 8 + FL_TEXT_SLACK];
    *how = (fl_criteo){0};
    for (int i = 0; i < 3; i++)
        if (strcmp(next_word(&command, word), start[i]))
            return false;
    while (*next_word(&command, word)) {
        next_word(&command, value);
        if (!strcmp(word, "--hash") && fl_hash_find(value)) {
            snprintf(name, FL_HASH_NAME, "%.*s", FL_HASH_NAME - 1, value);
            how->hash = name;
        } else if (strcmp(word, "--dim") ||
                   !fl_i64_any(value, strlen(value), &how->dim)) {
            return false; /* the shell must interpret it */
        }
    }
    return how->dim > 0;
}

/* --- text --- */

/* Write digits and a power of ten as repr() does: 0.0012, 1200.0 or, far from
 * 1, 1.2e-05. */
static size_t lay_out(const char *digits, int n, int exponent, char *out)
{
    char *to = out;
    const int before = exponent + 1; /* digits before the point */
    if (exponent < -4 || exponent >= 16)
        return (size_t)snprintf(out, FL_F64_TEXT - 1, "%c%s%.*se%c%02d",
                                digits[0], n > 1 ? "." : "", n - 1, digits + 1,
                                exponent < 0 ? '-' : '+', abs(exponent));
    if (before < 1)
        *to++ = '0';
    for (int i = before < 1 ? before : 0; i < n || i <= before; i++) {
        if (i == before)
            *to++ = '.';
        *to++ = i >= 0 && i < n ? digits[i] : '0';
    }
    *to = 0;
    return (size_t)(to - out);
}

size_t fl_f64_text(double x, char out[FL_F64_TEXT])
{
    char text[FL_F64_TEXT], digits[20];
    /* Different texts of 15 digits are different doubles, except for subnormal
     * numbers. */
    int precision = x > -DBL_MIN && x < DBL_MIN ? 1 : 15, n = 0;
    do
        snprintf(text, sizeof text, "%.*e", precision - 1, x);
    while (strtod(text, NULL) != x && ++precision < 18);
    const char *p = text;
    for (; *p != 'e'; p++) /* skips the decimal point of any locale */
        if (*p >= '0' && *p <= '9')
            digits[n++] = *p;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    const bool minus = *text == '-';
    out[0] = '-';
    return minus + lay_out(digits, n, atoi(p + 1), out + minus);
}

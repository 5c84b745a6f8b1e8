/* SPDX-License-Identifier: Apache-2.0 */
/* fields.c - reads protobuf fields across spans. */
#include "wire/fields.h"

fl_fields fl_fields_of(fl_bytes message)
{
    return (fl_fields){.of = message};
}

bool fl_fields_end(const fl_fields *f)
{
    return f->at == f->of.size;
}

static size_t bytes_left(const fl_fields *f)
{
    return f->of.size - f->at;
}

static bool read_byte(fl_fields *f, uint8_t *out)
{
    if (f->here == f->until) {
        size_t cursor = f->at;
        fl_span s;
        if (!fl_bytes_next(f->of, &cursor, &s))
            return false;
        f->here = s.at;
        f->until = f->here + s.size;
    }
    *out = *f->here++;
    f->at++;
    return true;
}

/* Skip n bytes, which must exist. */
static void skip_bytes(fl_fields *f, size_t n)
{
    f->at += n;
    if (n <= (size_t)(f->until - f->here))
        f->here += n;
    else
        f->here = f->until = NULL;
}

fl_err fl_fields_number(fl_fields *f, uint64_t *out)
{
    uint64_t v = 0;
    uint8_t byte;
    for (int i = 0; i < FL_VARINT_MOST; i++) {
        if (!read_byte(f, &byte))
            return fl_fail(FL_EPROTO, "a number is cut off after %d bytes", i);
        v |= (uint64_t)(byte & 0x7f) << 7 * i;
        if (byte < 0x80) {
            *out = v;
            return FL_OK;
        }
    }
    return fl_fail(FL_EPROTO, "a number has more than %d bytes",
                   FL_VARINT_MOST);
}

static fl_err read_fixed(fl_fields *f, fl_field *field, size_t n)
{
    uint8_t byte;
    if (n > bytes_left(f))
        return fl_fail(FL_EPROTO, "field %llu: %zu bytes are left of its %zu",
                       (unsigned long long)field->number, bytes_left(f), n);
    for (size_t i = 0; i < n && read_byte(f, &byte); i++)
        field->value |= (uint64_t)byte << 8 * i;
    return FL_OK;
}

static fl_err read_bytes(fl_fields *f, fl_field *field)
{
    uint64_t n;
    FL_TRY(fl_fields_number(f, &n));
    if (n > bytes_left(f))
        return fl_fail(FL_EPROTO,
                       "field %llu: it claims %llu bytes, %zu are left",
                       (unsigned long long)field->number, (unsigned long long)n,
                       bytes_left(f));
    field->bytes = (fl_bytes){f->of.of, f->of.at + f->at, (size_t)n};
    skip_bytes(f, (size_t)n);
    return FL_OK;
}

fl_err fl_fields_next(fl_fields *f, fl_field *out)
{
    uint64_t key;
    FL_TRY(fl_fields_number(f, &key));
    *out = (fl_field){.number = key >> 3, .wire = key & 7};
    if (!out->number)
        return fl_fail(FL_EPROTO, "a field has the number 0");
    switch (out->wire) {
    case FL_WIRE_VARINT:
        return fl_fields_number(f, &out->value);
    case FL_WIRE_8_BYTES:
        return read_fixed(f, out, 8);
    case FL_WIRE_BYTES:
        return read_bytes(f, out);
    case FL_WIRE_4_BYTES:
        return read_fixed(f, out, 4);
    }
    return fl_fail(FL_EPROTO, "field %llu has the unknown wire type %d",
                   (unsigned long long)out->number, (int)out->wire);
}

size_t fl_varint_put(uint8_t to[FL_VARINT_MOST], uint64_t v)
{
    size_t n = 0;
    for (; v > 0x7f; v >>= 7)
        to[n++] = (uint8_t)(v | 0x80);
    to[n++] = (uint8_t)v;
    return n;
}

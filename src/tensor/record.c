/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - a file with one record, read in parts.
 *
 *     LoDTensor      head  elements
 *     SelectedRows   version  R  row, R times  height  head  elements */
#include "tensor/record.h"

#include "tensor/file.h"

enum {
    HEAD = 64 << 10, /* bytes that are read to find the end of a head; a head
                        without LoD has 50 */
    ROWS_AT = 12,    /* bytes before the rows */
};

static fl_err read_bytes(const fl_record *r, int64_t from, void *to, size_t n)
{
    return r->disk->read_at(r->file, from, to, n);
}

/* Check that the tensor part, from byte `from` on, is exactly the rest of the
 * file. */
static fl_err read_head(fl_record *r, fl_kind kind, int64_t from, int64_t size)
{
    char bytes[HEAD], text[FL_SHAPE_TEXT];
    const size_t n = size - from < HEAD ? (size_t)(size - from) : HEAD;
    size_t used;
    FL_TRY(read_bytes(r, from, bytes, n));
    FL_TRY(fl_tensor_head_decode(r->path, kind, bytes, n, &r->dtype, &r->shape,
                                 &used));
    r->elements = from + (int64_t)used;
    const int64_t each = (int64_t)fl_dtype_size(r->dtype);
    const int64_t left = size - r->elements;
    const int64_t numel = fl_shape_numel(&r->shape);
    if (left % each || left / each != numel)
        return fl_fail(
            FL_EPROTO, "%s: %s%s has %lld elements, but %lld bytes are left",
            r->path, fl_dtype_name(r->dtype), fl_shape_text(&r->shape, text),
            (long long)numel, (long long)left);
    return FL_OK;
}

static fl_err read_rows_head(fl_record *r, int64_t size)
{
    char head[ROWS_AT] = {0}, text[FL_SHAPE_TEXT];
    uint32_t version;
    uint64_t n;
    if (size < ROWS_AT)
        return fl_fail(FL_EPROTO,
                       "%s: it has %lld bytes, too few for selected rows",
                       r->path, (long long)size);
    FL_TRY(read_bytes(r, 0, head, sizeof head));
    memcpy(&version, head, sizeof version);
    memcpy(&n, head + sizeof version, sizeof n);
    if (version)
        return fl_fail(FL_EPROTO, "%s: version %u, only 0 is known", r->path,
                       version);
    const uint64_t left = (uint64_t)size - ROWS_AT;
    if (left < sizeof(int64_t) ||
        n > (left - sizeof(int64_t)) / sizeof(int64_t))
        return fl_fail(FL_EPROTO, "%s: %llu rows, but %llu bytes are left",
                       r->path, (unsigned long long)n,
                       (unsigned long long)left);
    const int64_t height_at = ROWS_AT + (int64_t)(n * sizeof(int64_t));
    FL_TRY(read_bytes(r, height_at, &r->height, sizeof r->height));
    FL_TRY(read_head(r, FL_SELECTED_ROWS, height_at + (int64_t)sizeof r->height,
                     size));
    if (!r->shape.rank || (uint64_t)r->shape.dim[0] != n)
        return fl_fail(
            FL_EPROTO, "%s: it lists %llu rows, but its value has the shape %s",
            r->path, (unsigned long long)n, fl_shape_text(&r->shape, text));
    return FL_OK;
}

fl_err fl_record_open(const fl_disk *disk, const char *path, fl_kind kind,
                      fl_record *out)
{
    fl_record r = {.disk = disk, .path = path};
    FL_TRY(disk->look(disk, path, &r.file, &r.size));
    const fl_err err = kind == FL_SELECTED_ROWS
                           ? read_rows_head(&r, r.size)
                           : read_head(&r, FL_LOD_TENSOR, 0, r.size);
    if (err)
        fl_record_close(&r);
    else
        *out = r;
    return err;
}

void fl_record_close(fl_record *r)
{
    if (r->file)
        r->disk->close(r->file);
    r->file = NULL;
}

fl_err fl_record_read(const fl_record *r, int64_t first, int64_t n, void *to)
{
    const int64_t each = (int64_t)fl_dtype_size(r->dtype);
    return read_bytes(r, r->elements + first * each, to, (size_t)(n * each));
}

fl_err fl_record_rows(const fl_record *r, int64_t first, int64_t n, int64_t *to)
{
    return read_bytes(r, ROWS_AT + first * (int64_t)sizeof *to, to,
                      (size_t)n * sizeof *to);
}

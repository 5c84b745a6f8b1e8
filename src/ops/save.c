/* SPDX-License-Identifier: Apache-2.0 */
/* Variables to files and back, in Paddle's format (tensor/file.h).
 *
 *     save          one tensor, or selected rows, to file_path
 *     load          the same back; selected rows into a variable of that kind
 *     save_combine  all X, one after the other, to one file
 *     load_combine  the same back: as many as there are Out, in that order
 *
 * save_as_fp16 halves a file; load_as_fp16 keeps what was loaded as f16. */
#include "op/op.h"
#include "tensor/file.h"

static fl_err disk_of(const fl_call *c, const fl_disk **disk)
{
    *disk = c->hooks ? c->hooks->disk : NULL;
    if (!*disk)
        return fl_fail(FL_EINVAL,
                       "%s: this process has no disk to read or write",
                       c->def->type);
    return FL_OK;
}

/* A program may have "@EMPTY@" in place of a variable. */
static fl_err all_there(const fl_call *c, fl_value *const *v, int n)
{
    for (int i = 0; i < n; i++)
        if (!v[i])
            return fl_fail(FL_EINVAL, "%s: variable %d is missing",
                           c->def->type, i);
    return FL_OK;
}

static fl_err may_write(const fl_call *c, const fl_disk *disk, const char *path)
{
    int64_t size;
    if (!*path)
        return fl_fail(FL_EINVAL, "%s: file_path is empty", c->def->type);
    if (fl_attr_bool(c, "overwrite") || disk->size(disk, path, &size))
        return FL_OK;
    return fl_fail(FL_EINVAL, "%s: %s exists, and overwrite is false",
                   c->def->type, path);
}

static fl_err save(fl_call *c)
{
    const char *path = fl_attr_str(c, "file_path");
    const fl_disk *disk;
    FL_TRY(disk_of(c, &disk));
    FL_TRY(all_there(c, c->in[0], c->n_in[0]));
    FL_TRY(may_write(c, disk, path));
    return fl_values_save(disk, path, c->n_in[0],
                          (const fl_value *const *)c->in[0],
                          fl_attr_bool(c, "save_as_fp16"));
}

static fl_err to_f16(fl_tensor *t)
{
    fl_tensor half = {0};
    if (t->dtype != FL_F32 && t->dtype != FL_F64)
        return FL_OK;
    fl_err err = fl_tensor_resize(&half, FL_F16, &t->shape);
    if (!err)
        err = fl_convert(fl_tensor_numel(t), t->dtype, t->data, FL_F16,
                         half.data);
    if (!err)
        err = fl_lod_copy(&half.lod, &t->lod);
    if (err) {
        fl_tensor_fini(&half);
        return err;
    }
    fl_tensor_fini(t);
    *t = half;
    return FL_OK;
}

static fl_err load(fl_call *c)
{
    const char *path = fl_attr_str(c, "file_path");
    const fl_disk *disk;
    FL_TRY(disk_of(c, &disk));
    FL_TRY(all_there(c, c->out[0], c->n_out[0]));
    for (int i = 0; i < c->n_out[0]; i++)
        if (c->out[0][i]->kind != FL_SELECTED_ROWS)
            c->out[0][i]->kind = FL_LOD_TENSOR;
    FL_TRY(fl_values_load(disk, path, c->n_out[0], c->out[0]));
    for (int i = 0; i < c->n_out[0] && fl_attr_bool(c, "load_as_fp16"); i++) {
        fl_value *v = c->out[0][i];
        bool rows = v->kind == FL_SELECTED_ROWS;
        FL_TRY(to_f16(rows ? &v->rows.value : &v->tensor));
    }
    return FL_OK;
}

/* The four operators differ only in the number of variables. */
enum {
    FLAGS = FL_OP_NO_INFER | FL_OP_DYNAMIC | FL_OP_LOCAL
};

const fl_op_def fl_op_save = {
    .type = "save",
    .in = {{"X"}},
    .attr =
        {
            {"file_path", FL_ATTR_STRING, .required = true},
            {"overwrite", FL_ATTR_BOOL, .b = true},
            {"save_as_fp16", FL_ATTR_BOOL, .b = false},
        },
    .flags = FLAGS,
    .infer = fl_infer_none,
    .run = save,
};

const fl_op_def fl_op_save_combine = {
    .type = "save_combine",
    .in = {{"X", FL_MANY}},
    .attr =
        {
            {"file_path", FL_ATTR_STRING, .required = true},
            {"overwrite", FL_ATTR_BOOL, .b = true},
            {"save_as_fp16", FL_ATTR_BOOL, .b = false},
        },
    .flags = FLAGS,
    .infer = fl_infer_none,
    .run = save,
};

const fl_op_def fl_op_load = {
    .type = "load",
    .out = {{"Out"}},
    .attr =
        {
            {"file_path", FL_ATTR_STRING, .required = true},
            {"load_as_fp16", FL_ATTR_BOOL, .b = false},
        },
    .flags = FLAGS,
    .infer = fl_infer_none,
    .run = load,
};

const fl_op_def fl_op_load_combine = {
    .type = "load_combine",
    .out = {{"Out", FL_MANY}},
    .attr =
        {
            {"file_path", FL_ATTR_STRING, .required = true},
            {"load_as_fp16", FL_ATTR_BOOL, .b = false},
        },
    .flags = FLAGS,
    .infer = fl_infer_none,
    .run = load,
};

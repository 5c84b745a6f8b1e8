/* SPDX-License-Identifier: Apache-2.0 */
/* dtype.c - the element types, one line each. */
#include "tensor/tensor.h"

#include <string.h>

typedef struct row {
    fl_dtype type;
    size_t size; /* bytes */
    const char *name, *long_name;
} row;

static const row types[] = {
    {FL_BOOL, 1, "bool", "bool"},  {FL_I16, 2, "i16", "int16"},
    {FL_I32, 4, "i32", "int32"},   {FL_I64, 8, "i64", "int64"},
    {FL_F16, 2, "f16", "float16"}, {FL_F32, 4, "f32", "float32"},
    {FL_F64, 8, "f64", "float64"}, {FL_U8, 1, "u8", "uint8"},
    {FL_I8, 1, "i8", "int8"},
};

enum {
    N_TYPES = sizeof types / sizeof *types
};

static const row *row_of(int number)
{
    for (int i = 0; i < N_TYPES; i++)
        if ((int)types[i].type == number)
            return &types[i];
    return NULL;
}

size_t fl_dtype_size(fl_dtype t)
{
    const row *r = row_of((int)t);
    return r ? r->size : 0;
}

const char *fl_dtype_name(fl_dtype t)
{
    const row *r = row_of((int)t);
    return r ? r->name : "?";
}

const char *fl_dtype_word(fl_dtype t)
{
    const row *r = row_of((int)t);
    return r ? r->long_name : "?";
}

bool fl_dtype_find(const char *name, fl_dtype *t)
{
    for (int i = 0; i < N_TYPES; i++)
        if (!strcmp(types[i].name, name) || !strcmp(types[i].long_name, name)) {
            *t = types[i].type;
            return true;
        }
    return false;
}

bool fl_dtype_valid(int number)
{
    return row_of(number);
}

/* save_in.h - the inside of saving.
 *
 *     save.c        files, and variables that are cut by rows
 *     save_table.c  tables that are spread by id */
#ifndef FL_TRAIN_SAVE_IN_H
#define FL_TRAIN_SAVE_IN_H

#include "train/save.h"

enum {
    FL_SAVE_PART = 4 << 20 /* bytes of a variable that pass through at a time */
};

/* A file that grows, beside the place that it will take. */
typedef struct fl_writer {
    const fl_saver *s;
    char *path, *aside;
    fl_file *file;
} fl_writer;

fl_err fl_writer_add(fl_writer *o, const void *bytes, size_t n) FL_MUST_CHECK;

/* Away with a file that lay aside, after err, whose sentence stays. */
fl_err fl_save_drop(const fl_disk *disk, const char *path,
                    fl_err err) FL_MUST_CHECK;

/* The record of a variable that is spread by id. */
fl_err fl_writer_add_table(fl_writer *o, const fl_var *v) FL_MUST_CHECK;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* record_fuzz.c - reads any bytes as a file that is read in parts. All elements
 * that the head announces must be readable. */
#include "tensor/record.h"

#include "base/memdisk.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const bool rows = size && data[0] & 1;
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_record r;
    if (size && !fl_disk_write(d, "f", data + 1, size - 1, false) &&
        !fl_record_open(d, "f", rows ? FL_SELECTED_ROWS : FL_LOD_TENSOR, &r)) {
        const int64_t n = fl_shape_numel(&r.shape);
        char *to = fl_mem_alloc(size + sizeof(int64_t));
        if (fl_record_read(&r, 0, n, to) ||
            (rows && fl_record_rows(&r, 0, r.shape.dim[0], (int64_t *)to)))
            abort();
        fl_mem_free(to);
        fl_record_close(&r);
    }
    fl_memdisk_free(m);
    return 0;
}

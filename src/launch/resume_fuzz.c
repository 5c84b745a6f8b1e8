/* SPDX-License-Identifier: Apache-2.0 */
/* resume_fuzz.c - reads the file `resume` of a snapshot directory. */
#include "launch/launch.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All strings end within the text. */
static void check_string(const char *s, const char *text, size_t size)
{
    if (!s || s < text || s > text + size || s + strlen(s) > text + size)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fl_mem_alloc(size + 1);
    fl_launched l;
    memcpy(text, data, size);
    text[size] = 0;
    if (!fl_launched_decode(&l, "resume", text)) {
        check_string(l.program, text, size);
        check_string(l.folder, text, size);
        for (int64_t i = 0; i < l.words.n - 1; i++)
            check_string(l.words.at[i], text, size);
        for (int64_t i = 0; i < l.set.n; i++) {
            check_string(l.set.at[i], text, size);
            if (!strchr(l.set.at[i], '='))
                abort();
        }
        if (l.words.n < 2 || l.words.at[l.words.n - 1])
            abort();
    }
    fl_launched_fini(&l);
    fl_mem_free(text);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c - the list of the files of a save, to text and back.
 *
 * The checksum is compared first. The text is still checked after that, because
 * somebody may have computed a checksum for other text. */
#include "base/manifest.h"

#include "base/crc.h"
#include "base/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    VERSION = 1
};

void fl_manifest_fini(fl_manifest *m)
{
    for (int64_t i = 0; i < m->file.n; i++)
        fl_mem_free(m->file.at[i].name);
    fl_vec_fini(&m->file);
    fl_mem_free(m->kind);
    fl_mem_free(m->staged);
    *m = (fl_manifest){0};
}

/* The index of a name, or the index at which it must be inserted. */
static int64_t find_place(const fl_manifest *m, const char *name, bool *there)
{
    int64_t low = 0, high = m->file.n;
    *there = false;
    while (low < high) {
        const int64_t mid = low + (high - low) / 2;
        const int order = strcmp(m->file.at[mid].name, name);
        if (!order) {
            *there = true;
            return mid;
        }
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

void fl_manifest_put(fl_manifest *m, const char *name, int64_t size,
                     uint32_t crc)
{
    bool there;
    const int64_t i = find_place(m, name, &there);
    if (!there)
        fl_insert(&m->file, i, (fl_listed){.name = fl_mem_strdup(name)});
    m->file.at[i].size = size;
    m->file.at[i].crc = crc;
}

const fl_listed *fl_manifest_find(const fl_manifest *m, const char *name)
{
    bool there;
    const int64_t i = find_place(m, name, &there);
    return there ? &m->file.at[i] : NULL;
}

/* --- to text --- */

static void add_name(fl_str *out, const char *name)
{
    for (; *name; name++)
        if (*name == '\n')
            fl_str_add(out, "\\n");
        else if (*name == '\\')
            fl_str_add(out, "\\\\");
        else
            fl_str_bytes(out, name, 1);
}

void fl_manifest_encode(const fl_manifest *m, fl_str *out)
{
    const size_t start = out->n;
    fl_str_printf(out, "fluid manifest %d\nkind %s\n", VERSION, m->kind);
    if (m->staged)
        fl_str_printf(out, "staged %s\n", m->staged);
    for (int64_t i = 0; i < m->file.n; i++) {
        const fl_listed *f = &m->file.at[i];
        fl_str_printf(out, "file %" PRId64 " %08" PRIx32 " ", f->size, f->crc);
        add_name(out, f->name);
        fl_str_add(out, "\n");
    }
    fl_str_printf(out, "end %08" PRIx32 "\n",
                  fl_crc32c(0, out->at + start, out->n - start));
}

/* --- from text --- */

typedef struct reader {
    const char *path;
    const char *at, *end; /* the rest of the text */
    int line;
} reader;

static fl_err fail_damaged(const reader *r, const char *expected)
{
    return fl_fail(FL_EPROTO, "%s: line %d is damaged: expected %s", r->path,
                   r->line, expected);
}

/* Copy the next line, without its line feed. */
static fl_err take_line(reader *r, fl_str *line)
{
    const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
    r->line++;
    if (!stop || memchr(r->at, 0, (size_t)(stop - r->at)))
        return fail_damaged(r, "a line of text");
    line->n = 0;
    fl_str_bytes(line, r->at, (size_t)(stop - r->at));
    r->at = stop + 1;
    return FL_OK;
}

/* Compare the checksum in the last line with that of the lines before it. */
static fl_err check_end(reader *r)
{
    enum {
        END = 13 /* bytes of the line: "end ", eight digits, line feed */
    };
    char want[END + 1];
    const size_t n = (size_t)(r->end - r->at);
    if (n < END)
        return fl_fail(FL_EPROTO,
                       "%s: it has %zu bytes, too few for a manifest", r->path,
                       n);
    const uint32_t crc = fl_crc32c(0, r->at, n - END);
    snprintf(want, sizeof want, "end %08" PRIx32 "\n", crc);
    if (memcmp(r->end - END, want, END))
        return fl_fail(FL_EPROTO,
                       "%s: is damaged: its CRC-32C is %08" PRIx32
                       ", its last line says \"%.12s\"",
                       r->path, crc, r->end - END);
    r->end -= END;
    return FL_OK;
}

static fl_err take_head(reader *r, fl_str *line, fl_manifest *m)
{
    int version = 0;
    FL_TRY(take_line(r, line));
    if (sscanf(line->at, "fluid manifest %9d", &version) != 1 || version < 1)
        return fail_damaged(r, "\"fluid manifest\" and a number");
    if (version != VERSION)
        return fl_fail(FL_EINVAL,
                       "%s: version %d, but this program knows version %d: a "
                       "newer one has written it",
                       r->path, version, VERSION);
    FL_TRY(take_line(r, line));
    if (!fl_starts_with(line->at, "kind ") || !line->at[5])
        return fail_damaged(r, "\"kind\" and a word");
    m->kind = fl_mem_strdup(line->at + 5);
    return FL_OK;
}

static fl_err take_staged(reader *r, const char *line, fl_manifest *m)
{
    const char *name = line + strlen("staged ");
    if (m->staged || m->file.n || !fl_starts_with(name, FL_STAGING) ||
        strchr(name, '/'))
        return fail_damaged(r, "one folder of staged files, before the files");
    m->staged = fl_mem_strdup(name);
    return FL_OK;
}

/* Undo the escapes of add_name, in place. */
static bool unescape(char *name)
{
    char *to = name;
    for (; *name; name++, to++) {
        *to = *name;
        if (*name != '\\')
            continue;
        if (*++name != 'n' && *name != '\\')
            return false;
        *to = *name == 'n' ? '\n' : '\\';
    }
    *to = 0;
    return true;
}

static fl_err take_file(reader *r, char *line, fl_manifest *m)
{
    char *at = line + strlen("file ");
    fl_listed f = {0};
    if (!fl_starts_with(line, "file ") || *at < '0' || *at > '9')
        return fail_damaged(r, "\"file\", bytes, CRC-32C and name");
    f.size = strtoll(at, &at, 10);
    if (*at++ != ' ' || strspn(at, "0123456789abcdef") != 8 || at[8] != ' ')
        return fail_damaged(r, "a CRC-32C of eight digits");
    f.crc = (uint32_t)strtoul(at, NULL, 16);
    f.name = at + 9;
    if (!unescape(f.name))
        return fail_damaged(r, "\\\\ or \\n where a name has a backslash");
    if (fl_path_check(f.name))
        return fl_fail_at(FL_EPROTO, "%s, line %d", r->path, r->line);
    if (m->file.n && strcmp(m->file.at[m->file.n - 1].name, f.name) >= 0)
        return fail_damaged(r, "names in their order");
    f.name = fl_mem_strdup(f.name);
    fl_push(&m->file, f);
    return FL_OK;
}

static fl_err decode_lines(reader *r, fl_str *line, fl_manifest *m)
{
    FL_TRY(check_end(r));
    FL_TRY(take_head(r, line, m));
    while (r->at < r->end) {
        FL_TRY(take_line(r, line));
        FL_TRY(fl_starts_with(line->at, "staged ") ? take_staged(r, line->at, m)
                                                   : take_file(r, line->at, m));
    }
    return FL_OK;
}

fl_err fl_manifest_decode(const char *path, const char *text, size_t n,
                          fl_manifest *out)
{
    reader r = {path, text, text + n, 0};
    fl_manifest m = {0};
    fl_str line = {0};
    const fl_err err = decode_lines(&r, &line, &m);
    fl_str_fini(&line);
    if (err)
        fl_manifest_fini(&m);
    else
        *out = m;
    return err;
}

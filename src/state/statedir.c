/* SPDX-License-Identifier: Apache-2.0 */
/* statedir.c - finding, locking and removing the directory of a server.
 *
 * The lock is a record lock (fcntl). A child that outlives the server would
 * keep a lock of flock and block the next server; a record lock ends with its
 * process, and the system names the process that holds it. The system ends all
 * threads of a process before it releases the lock, so there is never a second
 * writer.
 *
 * Easy to get wrong: a process that closes any descriptor of the lock's file
 * loses the lock. So the file is opened once. */
#include "state/statedir.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/disk.h"
#include "base/failpoint.h"
#include "base/flag.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum {
    BLOCK = 512,      /* bytes; what st_blocks counts */
    LAYOUT = 5,       /* version of all files of a state */
    NAME_DIGITS = 12, /* of the job's digest in the name of its directory */
    HEAD_BYTES = 4096,
    NUMBERS = 0x01020304, /* how this machine orders bytes */
};

static const char magic[8] = "FLSTATE";

/* A file that is there while the state is made from a copy, which has a head
 * that says `ready`. */
#define FILLING "filling"

/* The files of a state; a number follows a name that ends with a dash. What has
 * other files is no state, and nothing in it is removed. */
static const char *const file_names[] = {
    "head",   "lock",   FILLING,   "setup",    "catalogue",
    "slots",  "dense",  "entries", "stage",    "control-",
    "owner-", "rates-", "table-",  "windows-", "extent-",
};

#define PAUSE     (100 * FL_MS) /* between two tries to take the lock */
#define TELL_EACH (5 * FL_SEC)  /* between two lines about a wait */

/* The file `head`. */
typedef struct head {
    char magic[8];
    uint32_t layout, numbers;
    char job[40];
    int32_t server, owners;
    uint64_t id;
    uint64_t incarnation;
    uint64_t generation; /* counts rollbacks */
    uint64_t ready;      /* 1: complete, unless there is the file FILLING */
    uint64_t over;       /* 1: its job has ended */
    char launch[64];     /* FLUID_JOB of the last process that held it */
} head;

struct fl_statedir {
    char *path;
    int lock;
    bool found;
    fl_mapping *map;
    head *head;
};

/* --- where --- */

/* The directories in which states may lie: `base` alone, or those of the list.
 */
static int list_bases(const char *base, char *out[2])
{
    const char *own = base ? base : fl_flag_text("FLUID_STATE_DIR");
    const char *run = fl_flag_text("XDG_RUNTIME_DIR");
    fl_str s = {0};
    if (own) {
        out[0] = fl_mem_strdup(own);
        return 1;
    }
    fl_str_printf(&s, "/dev/shm/fluid.%lld", (long long)getuid());
    out[0] = fl_str_take(&s);
    if (!run)
        return 1;
    out[1] = fl_path_join(run, "fluid");
    return 2;
}

/* Bytes that a directory, or the one that it will be made in, has room for. */
static int64_t room_of(const char *base)
{
    struct statvfs fs;
    char *above = fl_path_parent(base);
    const int no = statvfs(base, &fs) && statvfs(above, &fs);
    fl_mem_free(above);
    return no ? -1 : (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
}

static char *path_in(const char *base, const fl_statedir_opts *o)
{
    fl_str s = {0};
    if (o->name)
        return fl_path_join(base, o->name);
    fl_str_printf(&s, "%s/%.*s-server-%d", base, NAME_DIGITS, o->job,
                  o->server);
    return fl_str_take(&s);
}

static fl_err too_small(int n, char *const *base, const fl_statedir_opts *o)
{
    fl_str rooms = {0};
    for (int i = 0; i < n; i++)
        fl_str_printf(&rooms, "%s%s has room for %lld", i ? ", " : "", base[i],
                      (long long)room_of(base[i]));
    const fl_err err =
        fl_fail(FL_ENOMEM,
                "the state of server %d needs %zu bytes; %s; name another "
                "directory with FLUID_STATE_DIR",
                o->server, o->need, rooms.at);
    fl_str_fini(&rooms);
    return err;
}

/* The directory that has the state, or NULL. Own: new. */
static char *find_path(int n, char *const *base, const fl_statedir_opts *o)
{
    struct stat st;
    for (int i = 0; i < n; i++) {
        char *path = path_in(base[i], o);
        if (!stat(path, &st))
            return path;
        fl_mem_free(path);
    }
    return NULL;
}

/* The directory that has the state, or else the first with room for it. Own:
 * *out. */
static fl_err choose_path(const fl_statedir_opts *o, char **out)
{
    char *base[2];
    const int n = list_bases(o->base, base);
    fl_err err = FL_OK;
    *out = find_path(n, base, o);
    for (int i = 0; i < n && !*out; i++)
        if (room_of(base[i]) >= (int64_t)o->need)
            *out = path_in(base[i], o);
    if (!*out)
        err = too_small(n, base, o);
    for (int i = 0; i < n; i++)
        fl_mem_free(base[i]);
    return err;
}

static fl_err path_failed(const char *path, const char *what)
{
    return fl_fail(errno == ENOENT ? FL_ENOENT : FL_EIO, "%s: cannot %s: %s",
                   path, what, strerror(errno));
}

fl_err fl_statedir_make_private(const char *path)
{
    struct stat st;
    if (mkdir(path, 0700) && errno != EEXIST)
        return path_failed(path, "make it");
    if (lstat(path, &st))
        return path_failed(path, "look at it");
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022)
        return fl_fail(FL_EINVAL,
                       "%s is not a directory that only its owner, this user, "
                       "may write to; remove it, or name another one",
                       path);
    return FL_OK;
}

/* --- the lock --- */

/* Who holds it, into `text`; the lock's file has the command. */
static int read_holder(int fd, char *text, size_t size)
{
    struct flock other = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const ssize_t n = pread(fd, text, size - 1, 0);
    text[n > 0 ? n : 0] = 0;
    text[strcspn(text, "\n")] = 0;
    if (fcntl(fd, F_GETLK, &other) || other.l_type == F_UNLCK)
        return 0;
    return (int)other.l_pid;
}

/* Write the command of this process into the lock's file. */
static void write_holder(int fd)
{
    char text[256] = "";
    const int from = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = from < 0 ? -1 : read(from, text, sizeof text - 2);
    if (from >= 0)
        close(from);
    n = n > 0 ? n : 0;
    for (ssize_t i = 0; i + 1 < n; i++)
        if (!text[i] || text[i] == '\n')
            text[i] = ' ';
    text[n] = '\n';
    if (ftruncate(fd, 0) || pwrite(fd, text, (size_t)n + 1, 0) < 0)
        return; /* the text is for people; the lock holds without it */
}

/* Whether the file is still the one at the path: its last holder may have
 * removed it. */
static bool is_at(int fd, const char *path)
{
    struct stat a, b;
    return !fstat(fd, &a) && !stat(path, &b) && a.st_ino == b.st_ino &&
           a.st_dev == b.st_dev;
}

typedef struct lock_try {
    int fd;
    int pid; /* of the process that holds it; 0: not known */
    char command[256];
} lock_try;

/* Take the lock now, or return false: another process has it. */
static fl_err try_lock(const char *path, lock_try *t, bool *taken)
{
    struct flock own = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    *taken = false;
    t->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (t->fd < 0 && errno == ENOENT)
        return FL_OK; /* the directory was removed just now */
    if (t->fd < 0)
        return path_failed(path, "open it");
    *taken = !fcntl(t->fd, F_SETLK, &own) && is_at(t->fd, path);
    if (*taken) {
        write_holder(t->fd);
        return FL_OK;
    }
    t->pid = read_holder(t->fd, t->command, sizeof t->command);
    close(t->fd);
    return FL_OK;
}

static void pause_lock(void)
{
    const struct timespec t = {.tv_nsec = PAUSE};
    nanosleep(&t, NULL);
}

/* Whether a process that has held the lock for `ns` is not about to end. It is
 * asked once: one that does not serve any more will end. */
static bool is_lock_kept(const fl_statedir_opts *o, int64_t ns, bool *asked)
{
    if (*asked || !o->serves || ns < o->wait_serving)
        return false;
    *asked = true;
    return o->serves(o->user);
}

static fl_err take_lock(fl_statedir *d, const fl_statedir_opts *o)
{
    const fl_clock *clock = fl_clock_real();
    const int64_t begin = fl_clock_now(clock);
    int64_t told = begin - TELL_EACH + FL_SEC; /* the first line after 1 s */
    bool asked = false;
    lock_try t = {0};
    char *path = fl_path_join(d->path, "lock");
    fl_err err = FL_OK;
    for (bool taken = false; !err && !taken;) {
        err = fl_statedir_make_private(d->path);
        if (!err)
            err = try_lock(path, &t, &taken);
        if (err || taken)
            break;
        const int64_t now = fl_clock_now(clock);
        if (now - begin >= o->wait)
            err = fl_fail(FL_ETIMEOUT,
                          "%s is held by process %d (%s) for %.0f s; end that "
                          "process first",
                          d->path, t.pid, t.command,
                          (double)(now - begin) / (double)FL_SEC);
        else if (is_lock_kept(o, now - begin, &asked))
            err = fl_fail(FL_ETIMEOUT,
                          "%s is held by process %d (%s), which serves at the "
                          "address of this server; end that process first, or "
                          "give this one an address of its own",
                          d->path, t.pid, t.command);
        else if (o->poll && o->poll(o->user))
            err = fl_fail(FL_EINTR, "%s: the wait for process %d was ended",
                          d->path, t.pid);
        else if (now - told >= TELL_EACH) {
            told = now;
            FL_WARN("%s is held by process %d (%s); this server waits for its "
                    "end, %.0f s so far, up to %.0f s",
                    d->path, t.pid, t.command,
                    (double)(now - begin) / (double)FL_SEC,
                    (double)o->wait / (double)FL_SEC);
        }
        if (!err)
            pause_lock();
    }
    fl_mem_free(path);
    if (!err)
        d->lock = t.fd;
    return err;
}

/* --- files --- */

void fl_statedir_visit(fl_statedir *d, void (*fn)(void *user, const char *name),
                       void *user)
{
    DIR *dir = opendir(d->path);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
            strcmp(e->d_name, "lock"))
            fn(user, e->d_name);
    if (dir)
        closedir(dir);
}

static bool is_number(const char *text)
{
    return *text && !text[strspn(text, "0123456789")];
}

static bool is_file_name(const char *name)
{
    bool is = false;
    for (size_t i = 0; i < sizeof file_names / sizeof *file_names; i++) {
        const size_t n = strlen(file_names[i]);
        is |= !strncmp(name, file_names[i], n) &&
              (file_names[i][n - 1] == '-' ? is_number(name + n) : !name[n]);
    }
    return is;
}

/* Err: EINVAL: the list of files lacks it. */
static fl_err check_file_name(const char *name)
{
    return is_file_name(name)
               ? FL_OK
               : fl_fail(FL_EINVAL,
                         "\"%s\" is not a file of a state; statedir.c has the "
                         "list of them",
                         name);
}

static void drop_file(void *user, const char *name)
{
    fl_statedir_drop(user, name);
}

void fl_statedir_drop(fl_statedir *d, const char *name)
{
    char *path = fl_path_join(d->path, name);
    unlink(path);
    fl_mem_free(path);
}

fl_err fl_statedir_make(fl_statedir *d, const char *name, size_t size,
                        fl_mapping **out)
{
    FL_TRY(check_file_name(name));
    fl_statedir_drop(d, name);
    char *path = fl_path_join(d->path, name);
    const fl_err err = fl_mapping_make(path, size, 0, out);
    fl_mem_free(path);
    return err;
}

fl_err fl_statedir_map(fl_statedir *d, const char *name, size_t size,
                       size_t reserve, fl_mapping **out)
{
    FL_TRY(check_file_name(name));
    char *path = fl_path_join(d->path, name);
    fl_mapping *m = NULL;
    fl_err err = d->found ? fl_mapping_find(path, reserve, &m)
                          : fl_mapping_make(path, size, reserve, &m);
    if (!err && fl_mapping_size(m) < size) {
        err = fl_fail(FL_EINVAL, "%s has %zu bytes, expected %zu or more", path,
                      fl_mapping_size(m), size);
        fl_mapping_unref(m);
    } else if (!err) {
        *out = m;
    }
    fl_mem_free(path);
    return err;
}

/* --- the head --- */

/* Refuse a state of another job, server, machine or version. `filled`: it was
 * made from its journal just now, and is not left. */
static fl_err check_head(const fl_statedir *d, const head *h,
                         const fl_statedir_opts *o, bool filled)
{
    char what[192] = "";
    if (memcmp(h->magic, magic, sizeof magic))
        snprintf(what, sizeof what, "it is not the state of a server");
    else if (h->layout != LAYOUT || h->numbers != NUMBERS)
        snprintf(what, sizeof what,
                 "its layout is %u (byte order %x), this program has %d (%x)",
                 h->layout, h->numbers, LAYOUT, NUMBERS);
    else if (strncmp(h->job, o->job, sizeof h->job) || h->server != o->server)
        snprintf(what, sizeof what,
                 "it is of job %.32s, server %d; this is job %s, server %d",
                 h->job, h->server, o->job, o->server);
    else if (h->owners != o->owners)
        snprintf(what, sizeof what,
                 "it was made with %d owner threads; FLUID_OWNERS is now %d",
                 h->owners, o->owners);
    if (!what[0])
        return FL_OK;
    if (filled)
        return fl_fail(FL_EINVAL,
                       "%s cannot be made from its journal: %s; `paddle state "
                       "ls` names the journal, and `paddle state rm` removes "
                       "it if it is not needed",
                       d->path, what);
    return fl_fail(FL_EINVAL,
                   "%s cannot be used: %s; remove it with `paddle state rm %s` "
                   "if it is not needed",
                   d->path, what, d->path);
}

static bool has_file(const char *dir, const char *name)
{
    struct stat st;
    char *path = fl_path_join(dir, name);
    const bool is = !stat(path, &st);
    fl_mem_free(path);
    return is;
}

/* Use the state that is there, if it is complete. `filled`: this process has
 * made it from a copy. */
static fl_err find_state(fl_statedir *d, const fl_statedir_opts *o, bool filled)
{
    char *path = fl_path_join(d->path, "head");
    fl_mapping *m = NULL;
    fl_err err = fl_mapping_find(path, 0, &m);
    fl_mem_free(path);
    if (err == FL_ENOENT)
        return FL_OK;
    if (err)
        return err;
    head *h = fl_mapping_at(m);
    const bool ready = fl_mapping_size(m) >= HEAD_BYTES &&
                       fl_word_get(&h->ready) &&
                       (filled || !has_file(d->path, FILLING));
    if (ready)
        err = check_head(d, h, o, filled);
    if (ready && !err) {
        d->found = true;
        d->map = m;
        d->head = h;
        fl_word_set(&h->incarnation, h->incarnation + 1);
        return FL_OK;
    }
    fl_mapping_unref(m);
    return err;
}

/* The head goes first: without it the rest is no state. */
static void drop_files(fl_statedir *d)
{
    fl_statedir_drop(d, "head");
    fl_statedir_visit(d, drop_file, d);
}

static fl_err make_state(fl_statedir *d, const fl_statedir_opts *o)
{
    drop_files(d);
    FL_TRY(fl_statedir_map(d, "head", HEAD_BYTES, 0, &d->map));
    d->head = fl_mapping_at(d->map);
    *d->head = (head){.layout = LAYOUT,
                      .numbers = NUMBERS,
                      .server = o->server,
                      .owners = o->owners,
                      .id = o->id,
                      .incarnation = 1,
                      .generation = 1};
    memcpy(d->head->magic, magic, sizeof magic);
    snprintf(d->head->job, sizeof d->head->job, "%s", o->job);
    return FL_OK;
}

/* Make the state from a copy that is elsewhere, if there is one. */
static fl_err fill_state(fl_statedir *d, const fl_statedir_opts *o)
{
    bool filled;
    fl_mapping *mark;
    drop_files(d);
    FL_TRY(fl_statedir_make(d, FILLING, 1, &mark));
    fl_mapping_unref(mark);
    FL_TRY(o->fill(o->fill_self, fl_path_base(d->path), d->path, &filled));
    return filled ? find_state(d, o, true) : FL_OK;
}

/* There is no complete state. If none can be made, nothing of it stays. */
static fl_err begin_state(fl_statedir *d, const fl_statedir_opts *o)
{
    fl_err err = o->fill ? fill_state(d, o) : FL_OK;
    if (!err && !d->found && o->existing)
        err = fl_fail(FL_ENOENT, "%s has no state any more", d->path);
    if (!err && !d->found)
        err = make_state(d, o);
    if (err)
        fl_statedir_remove(d);
    return err;
}

/* --- public functions --- */

fl_err fl_statedir_open(const fl_statedir_opts *o, fl_statedir **out)
{
    fl_statedir *d = fl_mem_alloc(sizeof *d);
    d->lock = -1;
    fl_err err = choose_path(o, &d->path);
    if (!err) {
        char *base = fl_path_parent(d->path);
        err = fl_statedir_make_private(base);
        if (err)
            fl_fail_at(err, "FLUID_STATE_DIR chooses it");
        fl_mem_free(base);
    }
    if (!err)
        err = take_lock(d, o);
    if (!err)
        err = find_state(d, o, false);
    if (!err && !d->found)
        err = begin_state(d, o);
    if (err) {
        fl_statedir_close(d);
        return err;
    }
    const char *launch = fl_flag_text("FLUID_JOB");
    snprintf(d->head->launch, sizeof d->head->launch, "%s",
             launch ? launch : "");
    *out = d;
    return FL_OK;
}

fl_err fl_statedir_find(const char *name, char **out)
{
    char *base[2];
    const int n = list_bases(NULL, base);
    *out = NULL;
    for (int i = 0; i < n; i++) {
        fl_statedir_info info;
        char *path = fl_path_join(base[i], name);
        if (!*out && !fl_statedir_look(path, &info) && info.ready)
            *out = path;
        else
            fl_mem_free(path);
        fl_mem_free(base[i]);
    }
    return *out ? FL_OK : fl_fail(FL_ENOENT, "there is no state %s", name);
}

void fl_statedir_close(fl_statedir *d)
{
    if (!d)
        return;
    fl_mapping_unref(d->map);
    if (d->lock >= 0)
        close(d->lock);
    fl_mem_free(d->path);
    fl_mem_free(d);
}

bool fl_statedir_found(const fl_statedir *d)
{
    return d->found;
}

void fl_statedir_ready(fl_statedir *d)
{
    fl_word_set(&d->head->ready, 1);
    fl_statedir_drop(d, FILLING);
}

void fl_statedir_set_over(fl_statedir *d, bool over)
{
    fl_word_set(&d->head->over, over);
    if (over)
        fl_failpoint_hit("end.over");
}

bool fl_statedir_is_over(const fl_statedir *d)
{
    return fl_word_get(&d->head->over);
}

void fl_statedir_remove(fl_statedir *d)
{
    drop_files(d);
    fl_failpoint_hit("end.removed");
    fl_statedir_drop(d, "lock");
    rmdir(d->path);
}

bool fl_statedir_exists(const fl_statedir *d)
{
    return has_file(d->path, "head");
}

const char *fl_statedir_path(const fl_statedir *d)
{
    return d->path;
}

uint64_t fl_statedir_id(const fl_statedir *d)
{
    return d->head->id;
}

int64_t fl_statedir_incarnation(const fl_statedir *d)
{
    return (int64_t)d->head->incarnation;
}

/* --- looking --- */

static void add_size(void *user, const char *name)
{
    void **at = user;
    struct stat st;
    char *path = fl_path_join(at[0], name);
    if (!stat(path, &st))
        *(int64_t *)at[1] += (int64_t)st.st_blocks * BLOCK;
    fl_mem_free(path);
}

/* Another process's lock is not touched: this one has none to lose. */
static void look_at_lock(const char *path, fl_statedir_info *out)
{
    struct stat st;
    char *lock = fl_path_join(path, "lock");
    const int fd = open(lock, O_RDWR | O_CLOEXEC);
    fl_mem_free(lock);
    if (fd < 0)
        return;
    out->pid = read_holder(fd, out->command, sizeof out->command);
    if (!fstat(fd, &st))
        out->since = (int64_t)st.st_mtime;
    close(fd);
}

/* Err: ENOENT: there is none, or a process was killed before it had written the
 * first bytes of it. */
static fl_err read_head(const char *path, head *h)
{
    static const char none[sizeof magic];
    char *file = fl_path_join(path, "head");
    const int fd = open(file, O_RDONLY | O_CLOEXEC);
    const fl_err err = fd < 0 ? path_failed(file, "open it") : FL_OK;
    fl_mem_free(file);
    if (err)
        return err;
    const ssize_t n = pread(fd, h, sizeof *h, 0);
    close(fd);
    const size_t some = n < (ssize_t)sizeof none ? (size_t)n : sizeof none;
    if (n >= 0 && (!memcmp(h, none, some) ||
                   (n < (ssize_t)sizeof *h && !memcmp(h, magic, some))))
        return fl_fail(FL_ENOENT, "%s has a state that is not complete", path);
    if (n != sizeof *h || memcmp(h->magic, magic, sizeof magic))
        return fl_fail(FL_EINVAL, "%s is not the state of a server", path);
    h->ready = h->ready && !has_file(path, FILLING);
    return FL_OK;
}

bool fl_statedir_waits(const fl_statedir_opts *o)
{
    char *base[2];
    const int n = list_bases(o->base, base);
    fl_statedir d = {.path = find_path(n, base, o)};
    fl_statedir_info info = {0};
    head h;
    const bool waits = d.path && !read_head(d.path, &h) && h.ready && !h.over &&
                       !check_head(&d, &h, o, false);
    if (waits)
        look_at_lock(d.path, &info);
    fl_mem_free(d.path);
    for (int i = 0; i < n; i++)
        fl_mem_free(base[i]);
    return waits && !info.pid;
}

fl_err fl_statedir_look(const char *path, fl_statedir_info *out)
{
    fl_statedir d = {.path = (char *)path};
    head h;
    FL_TRY(read_head(path, &h));
    *out = (fl_statedir_info){.server = h.server,
                              .incarnation = (int64_t)h.incarnation,
                              .ready = h.ready,
                              .over = h.over};
    snprintf(out->job, sizeof out->job, "%.32s", h.job);
    snprintf(out->launch, sizeof out->launch, "%.63s", h.launch);
    void *user[2] = {(void *)path, &out->bytes};
    fl_statedir_visit(&d, add_size, user);
    look_at_lock(path, out);
    return FL_OK;
}

/* --- what is left of a state --- */

bool fl_statedir_is_name(const char *name)
{
    static const char server[] = "-server-";
    return fl_starts_with(name, "pserver-") ||
           (strspn(name, "0123456789abcdef") == NAME_DIGITS &&
            fl_starts_with(name + NAME_DIGITS, server) &&
            is_number(name + NAME_DIGITS + strlen(server)));
}

/* Whether the directory has a file that a state without a head cannot have. */
static bool has_other_file(const char *dir, const fl_file_names *names)
{
    head h;
    bool has = has_file(dir, "head") && read_head(dir, &h) != FL_ENOENT;
    for (int64_t i = 0; i < names->n && !has; i++) {
        struct stat st;
        char *path = fl_path_join(dir, names->at[i]);
        has = !is_file_name(names->at[i]) || lstat(path, &st) ||
              !S_ISREG(st.st_mode);
        fl_mem_free(path);
    }
    return has;
}

fl_err fl_statedir_look_at_rest(const char *path, fl_statedir_info *out)
{
    fl_statedir d = {.path = (char *)path};
    fl_file_names names = {0};
    FL_TRY(fl_disk_real()->list(fl_disk_real(), path, &names));
    const bool other = !fl_statedir_is_name(fl_path_base(path)) ||
                       has_other_file(path, &names);
    fl_file_names_fini(&names);
    if (other)
        return fl_fail(FL_EINVAL, "%s is not the state of a server", path);
    *out = (fl_statedir_info){0};
    void *user[2] = {(void *)path, &out->bytes};
    fl_statedir_visit(&d, add_size, user);
    look_at_lock(path, out);
    return FL_OK;
}

fl_err fl_statedir_discard(const char *path)
{
    fl_statedir d = {.path = (char *)path};
    fl_statedir_info i;
    lock_try t = {0};
    bool taken;
    fl_err err = fl_statedir_look(path, &i);
    FL_TRY(err == FL_ENOENT ? fl_statedir_look_at_rest(path, &i) : err);
    char *lock = fl_path_join(path, "lock");
    err = try_lock(lock, &t, &taken);
    fl_mem_free(lock);
    FL_TRY(err);
    if (!taken && t.fd < 0)
        return fl_fail(FL_ENOENT, "%s was removed by another process", path);
    if (!taken)
        return fl_fail(FL_EINVAL, "%s is held by process %d (%s); end it first",
                       path, t.pid, t.command);
    fl_statedir_remove(&d);
    if (rmdir(path) && errno != ENOENT)
        err = path_failed(path, "remove it");
    close(t.fd);
    return err;
}

void fl_statedir_each(void (*fn)(void *user, const char *path), void *user)
{
    char *base[2];
    const fl_disk *disk = fl_disk_real();
    const int n = list_bases(NULL, base);
    for (int i = 0; i < n; i++) {
        fl_file_names names = {0};
        const fl_err err = disk->list(disk, base[i], &names);
        for (int64_t k = 0; k < names.n && !err; k++) {
            char *path = fl_path_join(base[i], names.at[k]);
            if (strstr(names.at[k], "server-"))
                fn(user, path);
            fl_mem_free(path);
        }
        fl_file_names_fini(&names);
        fl_mem_free(base[i]);
    }
}

static void sweep_state(void *user, const char *path)
{
    fl_statedir_info info;
    if (fl_statedir_look(path, &info) || info.pid || strcmp(info.launch, user))
        return;
    fl_statedir d = {.path = (char *)path};
    fl_statedir_remove(&d);
}

void fl_statedir_sweep(const char *launch)
{
    fl_statedir_each(sweep_state, (void *)launch);
}

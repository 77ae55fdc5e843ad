/* Makes one file operation of a program fail, or all from one on. It is preloaded (LD_PRELOAD) into the program as it is
 * shipped, so that nothing in the program knows of it and what its libraries do counts as well.
 *
 * FAULT_FOLDER  operations on files in this folder count, and those on relative paths
 * FAULT_AT      the operation that fails, from 1; 0 for none
 * FAULT_STAYS   if it is set, all operations after that one fail too
 * FAULT_ERROR   the number of the error; 0 lets reads and writes do one byte only
 * FAULT_LOG     a file that gets a line for each operation
 * FAULT_CLOCK   if it is set, the wall clock jumps by more than a year, back and forth
 *
 * Removing a file never fails: that is how a program cleans up. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define MOST 1024

static const char *folder;
static long at, count;
static int stays, error, log_to = -1, jumps;
static char counted[MOST];

__attribute__((constructor)) static void begin(void) {
    const char *text;
    folder = getenv("FAULT_FOLDER");
    at = (text = getenv("FAULT_AT")) ? atol(text) : 0;
    error = (text = getenv("FAULT_ERROR")) ? atoi(text) : 0;
    stays = getenv("FAULT_STAYS") != NULL;
    jumps = getenv("FAULT_CLOCK") != NULL;
    if ((text = getenv("FAULT_LOG")))
        log_to = (int)syscall(SYS_openat, AT_FDCWD, text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int counts(const char *path) {
    if (!folder || !path || !*path) return 0;
    return path[0] != '/' || !strncmp(path, folder, strlen(folder));
}

static int counts_open(int file) { return folder && file >= 0 && file < MOST && counted[file]; }

/* Counts an operation; whether it is to fail. */
static int fails(const char *what, const char *path) {
    long now = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
    if (log_to >= 0) {
        char line[512];
        int length = snprintf(line, sizeof line, "%s %s\n", what, path ? path : "");
        if (length > 0) syscall(SYS_write, log_to, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
    }
    return at && (now == at || (stays && now > at));
}

#define FAIL(what, path)                   \
    do {                                   \
        if (fails(what, path) && error) {  \
            errno = error;                 \
            return -1;                     \
        }                                  \
    } while (0)

static const char *how(int flags) {
    return flags & O_CREAT ? "create" : flags & O_ACCMODE ? "open to write" : "open";
}

#define OPEN(name)                                                  \
    int name(const char *path, int flags, ...) {                    \
        mode_t mode = 0;                                            \
        va_list rest;                                               \
        va_start(rest, flags);                                      \
        if (flags & (O_CREAT | O_TMPFILE)) mode = va_arg(rest, mode_t); \
        va_end(rest);                                               \
        int of_folder = counts(path);                               \
        if (of_folder) FAIL(how(flags), path);                      \
        int file = REAL(name)(path, flags, mode);                   \
        if (file >= 0 && file < MOST) counted[file] = (char)of_folder; \
        return file;                                                \
    }
OPEN(open)
OPEN(open64)

int close(int file) {
    if (file >= 0 && file < MOST) counted[file] = 0;
    return REAL(close)(file);
}

ssize_t read(int file, void *bytes, size_t size) {
    if (counts_open(file) && fails("read", NULL)) {
        if (error) {
            errno = error;
            return -1;
        }
        size = size ? 1 : 0;
    }
    return REAL(read)(file, bytes, size);
}

ssize_t write(int file, const void *bytes, size_t size) {
    if (counts_open(file) && fails("write", NULL)) {
        if (error) {
            errno = error;
            return -1;
        }
        size = size ? 1 : 0;
    }
    return REAL(write)(file, bytes, size);
}

int fsync(int file) {
    if (counts_open(file)) FAIL("fsync", NULL);
    return REAL(fsync)(file);
}

int fdatasync(int file) {
    if (counts_open(file)) FAIL("fdatasync", NULL);
    return REAL(fdatasync)(file);
}

int fchmod(int file, mode_t mode) {
    if (counts_open(file)) FAIL("fchmod", NULL);
    return REAL(fchmod)(file, mode);
}

int fchown(int file, uid_t user, gid_t group) {
    if (counts_open(file)) FAIL("fchown", NULL);
    return REAL(fchown)(file, user, group);
}

int flock(int file, int what) {
    if (counts_open(file)) FAIL("flock", NULL);
    return REAL(flock)(file, what);
}

int rename(const char *from, const char *to) {
    if (counts(from) || counts(to)) FAIL("rename", to);
    return REAL(rename)(from, to);
}

int mkdir(const char *path, mode_t mode) {
    if (counts(path)) FAIL("mkdir", path);
    return REAL(mkdir)(path, mode);
}

int statx(int file, const char *path, int flags, unsigned int mask, struct statx *found) {
    /* Rust asks once without a path whether the system has this call; the header promises that nobody does so. */
    const char *volatile given = path;
    const char *name = given;
    if (name && *name ? counts(name) : counts_open(file)) FAIL("stat", name);
    return REAL(statx)(file, path, flags, mask, found);
}

ssize_t readlink(const char *path, char *to, size_t size) {
    if (counts(path)) FAIL("readlink", path);
    return REAL(readlink)(path, to, size);
}

char *realpath(const char *path, char *to) {
    if (counts(path) && fails("realpath", path) && error) {
        errno = error;
        return NULL;
    }
    return REAL(realpath)(path, to);
}

static time_t jump(void) {
    static long calls;
    return (__atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) % 2 ? 1 : -1) * (time_t)400 * 86400;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = REAL(clock_gettime)(clock, now);
    if (jumps && clock == CLOCK_REALTIME) now->tv_sec += jump();
    return result;
}

#define _GNU_SOURCE
#include "faulty_disk.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/// A write or truncation that no sync has made durable yet.
struct change {
    struct change *older;
    struct change *newer;
    off_t offset;
    off_t size_before;
    off_t size_after;
    size_t old_count;
    size_t new_count;
    unsigned char *old_bytes;
    unsigned char *new_bytes;
};

struct file {
    struct file *next;
    dev_t device;
    ino_t number;
    char path[PATH_MAX];
    struct change *newest;
    struct change *oldest;
};

/// Held during each change and its record, so that the end of the process finds both or neither.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file *files;
static const char *folder;
static struct faulty_disk_control *control;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (!function) abort();
    return function;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULTY_DISK_CONTROL");
    folder = getenv("FAULTY_DISK_FOLDER");
    if (!path || !folder) return;
    int descriptor = open(path, O_RDWR | O_CLOEXEC);
    if (descriptor < 0) abort();
    void *memory = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) abort();
    close(descriptor);
    control = memory;
}

static void *copy(size_t count) {
    void *bytes = malloc(count ? count : 1);
    if (!bytes) abort();
    return bytes;
}

// MARK: Files

/// The watched file behind a descriptor; the lock is held.
static struct file *watched(int descriptor, struct stat *status) {
    if (!control || fstat(descriptor, status) != 0 || !S_ISREG(status->st_mode)) return NULL;
    for (struct file *file = files; file; file = file->next)
        if (file->device == status->st_dev && file->number == status->st_ino) return file;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return NULL;
    path[length] = 0;
    if (strncmp(path, folder, strlen(folder)) != 0) return NULL;
    // Shared memory of SQLite's connections: rebuilt by the first of them, and mapped, so that it must not shrink.
    if (length > 4 && strcmp(path + length - 4, "-shm") == 0) return NULL;
    struct file *file = copy(sizeof *file);
    memset(file, 0, sizeof *file);
    file->device = status->st_dev;
    file->number = status->st_ino;
    memcpy(file->path, path, (size_t)length + 1);
    file->next = files;
    files = file;
    return file;
}

/// All changes of a file are durable.
static void forget(struct file *file) {
    struct change *change = file->newest;
    while (change) {
        struct change *older = change->older;
        free(change->old_bytes);
        free(change->new_bytes);
        free(change);
        change = older;
    }
    file->newest = file->oldest = NULL;
}

static void record(struct file *file, struct change change) {
    struct change *kept = copy(sizeof *kept);
    *kept = change;
    kept->newer = NULL;
    kept->older = file->newest;
    if (file->newest) file->newest->newer = kept; else file->oldest = kept;
    file->newest = kept;
}

// MARK: The end

static void put(int descriptor, const unsigned char *bytes, size_t count, off_t offset) {
    while (count) {
        ssize_t written = REAL(pwrite64)(descriptor, bytes, count, offset);
        if (written <= 0) abort();
        bytes += written, count -= (size_t)written, offset += written;
    }
}

static void resize(int descriptor, off_t size) {
    if (REAL(ftruncate64)(descriptor, size) != 0) abort();
}

/// The next number of a seeded row (SplitMix64).
static uint64_t next(uint64_t *state) {
    uint64_t mixed = *state += 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    return mixed ^ (mixed >> 31);
}

/// Undoes all changes that were not synced, and repeats some of them.
static void lose(struct file *file, uint64_t *random) {
    if (!file->newest) return;
    int descriptor = open(file->path, O_RDWR | O_CLOEXEC);
    if (descriptor < 0) abort();
    for (struct change *change = file->newest; change; change = change->older) {
        put(descriptor, change->old_bytes, change->old_count, change->offset);
        resize(descriptor, change->size_before);
    }
    for (struct change *change = file->oldest; change && *random != 1; change = change->newer) {
        if (next(random) % 2) continue;
        if (change->new_count) put(descriptor, change->new_bytes, change->new_count, change->offset);
        else resize(descriptor, change->size_after);
    }
}

/// Counts an event, and ends the process if its time has come; the lock is held.
static void count(int is_send) {
    uint64_t events = ++control->events;
    uint64_t sends = control->sends += (uint64_t)is_send;
    int is_now = events == control->end_at_event || (is_send && sends == control->end_at_send);
    if (!is_now) return;
    uint64_t random = control->survivors;
    if (random)
        for (struct file *file = files; file; file = file->next) lose(file, &random);
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

// MARK: Calls that change files

/// Whether a file may grow; if so, uses up the free bytes.
static int grow(off_t from, off_t to) {
    if (to <= from) return 1;
    if (control->free_bytes < to - from) return 0;
    control->free_bytes -= to - from;
    return 1;
}

static ssize_t change(int descriptor, const void *bytes, size_t length, off_t offset, int is_at_end) {
    struct stat status;
    ssize_t result = -1;
    pthread_mutex_lock(&lock);
    struct file *file = watched(descriptor, &status);
    if (!file) {
        pthread_mutex_unlock(&lock);
        return is_at_end ? REAL(write)(descriptor, bytes, length) : REAL(pwrite64)(descriptor, bytes, length, offset);
    }
    if (is_at_end) offset = lseek(descriptor, 0, SEEK_CUR);
    off_t end = offset + (off_t)length;
    if (control->is_read_only) {
        errno = EROFS;
    } else if (!grow(status.st_size, end)) {
        errno = ENOSPC;
    } else {
        off_t overlap = status.st_size - offset;
        struct change made = {.offset = offset, .size_before = status.st_size, .new_count = length};
        if (overlap > 0) made.old_count = (size_t)overlap < length ? (size_t)overlap : length;
        made.size_after = end > status.st_size ? end : status.st_size;
        made.old_bytes = copy(made.old_count);
        made.new_bytes = copy(length);
        memcpy(made.new_bytes, bytes, length);
        if (pread(descriptor, made.old_bytes, made.old_count, offset) != (ssize_t)made.old_count) abort();
        put(descriptor, bytes, length, offset);
        if (is_at_end) lseek(descriptor, end, SEEK_SET);
        record(file, made);
        count(0);
        result = (ssize_t)length;
    }
    int failure = errno;
    pthread_mutex_unlock(&lock);
    errno = failure;
    return result;
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off64_t offset) {
    return change(descriptor, bytes, length, offset, 0);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t length, off_t offset) {
    return change(descriptor, bytes, length, offset, 0);
}

ssize_t write(int descriptor, const void *bytes, size_t length) { return change(descriptor, bytes, length, 0, 1); }

int ftruncate64(int descriptor, off64_t size) {
    struct stat status;
    int result = -1;
    pthread_mutex_lock(&lock);
    struct file *file = watched(descriptor, &status);
    if (!file) {
        pthread_mutex_unlock(&lock);
        return REAL(ftruncate64)(descriptor, size);
    }
    if (control->is_read_only) {
        errno = EROFS;
    } else if (!grow(status.st_size, size)) {
        errno = ENOSPC;
    } else {
        struct change made = {.offset = size, .size_before = status.st_size, .size_after = size};
        if (size < status.st_size) {
            made.old_count = (size_t)(status.st_size - size);
            control->free_bytes += status.st_size - size;
        }
        made.old_bytes = copy(made.old_count);
        made.new_bytes = copy(0);
        if (pread(descriptor, made.old_bytes, made.old_count, size) != (ssize_t)made.old_count) abort();
        resize(descriptor, size);
        record(file, made);
        count(0);
        result = 0;
    }
    int failure = errno;
    pthread_mutex_unlock(&lock);
    errno = failure;
    return result;
}

int ftruncate(int descriptor, off_t size) { return ftruncate64(descriptor, size); }

/// Syncs nothing: only the power cuts of this library happen in a test, and they keep what was synced.
static int sync_file(int descriptor, int (*otherwise)(int)) {
    struct stat status;
    pthread_mutex_lock(&lock);
    struct file *file = watched(descriptor, &status);
    if (file) {
        forget(file);
        count(0);
    }
    pthread_mutex_unlock(&lock);
    return file ? 0 : otherwise(descriptor);
}

int fdatasync(int descriptor) { return sync_file(descriptor, REAL(fdatasync)); }

int fsync(int descriptor) { return sync_file(descriptor, REAL(fsync)); }

int unlink(const char *path) {
    pthread_mutex_lock(&lock);
    struct stat status;
    int is_there = control && stat(path, &status) == 0;
    int result = REAL(unlink)(path);
    if (result == 0 && is_there) {
        for (struct file **link = &files; *link; link = &(*link)->next) {
            struct file *file = *link;
            if (file->device != status.st_dev || file->number != status.st_ino) continue;
            *link = file->next;
            control->free_bytes += status.st_size;
            forget(file);
            free(file);
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

// MARK: Free space

int statvfs64(const char *path, struct statvfs64 *status) {
    int result = REAL(statvfs64)(path, status);
    if (result != 0 || !control) return result;
    uint64_t blocks = control->free_bytes < 0 ? 0 : (uint64_t)control->free_bytes / status->f_frsize;
    if (blocks < status->f_bavail) status->f_bavail = blocks;
    return result;
}

int statvfs(const char *path, struct statvfs *status) { return statvfs64(path, (struct statvfs64 *)status); }

// MARK: Sends

static ssize_t sent(ssize_t result) {
    int failure = errno;
    if (control && result > 0) {
        pthread_mutex_lock(&lock);
        count(1);
        pthread_mutex_unlock(&lock);
    }
    errno = failure;
    return result;
}

ssize_t send(int descriptor, const void *bytes, size_t length, int flags) {
    return sent(REAL(send)(descriptor, bytes, length, flags));
}

ssize_t sendmsg(int descriptor, const struct msghdr *message, int flags) {
    return sent(REAL(sendmsg)(descriptor, message, flags));
}

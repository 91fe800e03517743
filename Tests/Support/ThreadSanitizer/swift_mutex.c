#define _GNU_SOURCE
#include "thread_sanitizer.h"

#if __has_feature(thread_sanitizer)
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// Methods of `Synchronization._MutexHandle`, whose only field is an atomic word. A mutex without contention is locked and
// unlocked through that word, in code that the sanitizer instruments; with contention the library calls the kernel.
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
#define SELF __attribute__((swift_context)) void *

void __tsan_acquire(void *address);
void __tsan_release(void *address);

typedef __attribute__((swiftcall)) void lock_function(uint32_t, SELF);
typedef __attribute__((swiftcall)) bool try_lock_function(SELF);
typedef __attribute__((swiftcall)) void unlock_function(SELF);

static lock_function *lock;
static try_lock_function *try_lock;
static unlock_function *unlock;

static void *find(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (!function) {
        fprintf(stderr, "Swift's library has no %s: its Mutex has changed, see Tests/Support/ThreadSanitizer\n", name);
        abort();
    }
    return function;
}

__attribute__((constructor)) static void find_all(void) {
    lock = (lock_function *)find(LOCK);
    try_lock = (try_lock_function *)find(TRY_LOCK);
    unlock = (unlock_function *)find(UNLOCK);
}

__attribute__((swiftcall)) void seen_lock(uint32_t thread, SELF self) __asm__(LOCK);
__attribute__((swiftcall)) void seen_lock(uint32_t thread, SELF self) {
    lock(thread, self);
    __tsan_acquire(self);
}

__attribute__((swiftcall)) bool seen_try_lock(SELF self) __asm__(TRY_LOCK);
__attribute__((swiftcall)) bool seen_try_lock(SELF self) {
    bool is_locked = try_lock(self);
    if (is_locked) __tsan_acquire(self);
    return is_locked;
}

__attribute__((swiftcall)) void seen_unlock(SELF self) __asm__(UNLOCK);
__attribute__((swiftcall)) void seen_unlock(SELF self) {
    __tsan_release(self);
    unlock(self);
}
#endif

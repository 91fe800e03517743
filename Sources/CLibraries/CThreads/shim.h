#ifndef WEIR_CTHREADS_SHIM_H
#define WEIR_CTHREADS_SHIM_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

// glibc declares these only under _GNU_SOURCE, which Swift's own modules are built without; their prototypes are part of its
// stable ABI.
extern int pthread_setname_np(pthread_t thread, const char *name);
extern int pthread_getname_np(pthread_t thread, char *name, size_t size);
extern long syscall(long number, ...);

// The first version of struct sched_attr (sched_setattr(2)), which glibc has only since 2.41.
struct weir_sched_attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

/// Gives the calling thread a time slice in nanoseconds: 100,000 to 100,000,000. Linux has it for ordinary threads since 6.12; before,
/// the call has no effect. Threads that it starts have the system's, as those of Dispatch's pool, which are started where work for them
/// arises.
static inline long weir_set_time_slice(uint64_t nanoseconds) {
    struct weir_sched_attr attributes = {0};
    long code = syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0);
    if (code != 0) return code;
    attributes.flags = 1;  // SCHED_FLAG_RESET_ON_FORK
    attributes.runtime = nanoseconds;
    attributes.deadline = attributes.period = 0;
    return syscall(SYS_sched_setattr, 0, &attributes, 0);
}

/// The time slice of the calling thread in nanoseconds; 0 where the system does not say.
static inline uint64_t weir_time_slice(void) {
    struct weir_sched_attr attributes = {0};
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return 0;
    return attributes.runtime;
}

#endif

#ifndef WEIR_CTHREADNAME_SHIM_H
#define WEIR_CTHREADNAME_SHIM_H

#include <pthread.h>
#include <stddef.h>

// glibc declares these only under _GNU_SOURCE, which Swift's own modules are built without; their prototypes are part of its
// stable ABI.
extern int pthread_setname_np(pthread_t thread, const char *name);
extern int pthread_getname_np(pthread_t thread, char *name, size_t size);

#endif

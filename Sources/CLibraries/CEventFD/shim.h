#ifndef CEVENTFD_SHIM_H
#define CEVENTFD_SHIM_H

/* eventfd wakes a thread that waits in epoll; accept4 sets close-on-exec atomically. */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

/* glibc declares it only under _GNU_SOURCE. */
extern int accept4(int listener, struct sockaddr *address, socklen_t *length, int flags);

#endif

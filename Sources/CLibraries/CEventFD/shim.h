#ifndef CEVENTFD_SHIM_H
#define CEVENTFD_SHIM_H

/* Linux: the wake-up descriptor, the wait for many descriptors, and accepting without a moment of inheritance. */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

/* Declared by the system for _GNU_SOURCE alone. */
extern int accept4(int listener, struct sockaddr *address, socklen_t *length, int flags);

#endif

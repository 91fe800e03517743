#include "signal_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

// Written before the first handler is installed and never again.
static int pipe_input = -1;

static void on_signal(int number) {
    int kept = errno;
    unsigned char byte = (unsigned char)number;
    // The pipe is full only when thousands of signals wait already: one more says nothing new.
    ssize_t written = write(pipe_input, &byte, 1);
    (void)written;
    errno = kept;
}

int weir_signal_pipe_open(const int *signals, int count) {
    if (pipe_input != -1) {
        errno = EBUSY;
        return -1;
    }
    int ends[2];
    if (pipe(ends) != 0) {
        return -1;
    }
    if (fcntl(ends[0], F_SETFD, FD_CLOEXEC) != 0 || fcntl(ends[1], F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0) {
        int kept = errno;
        close(ends[0]);
        close(ends[1]);
        errno = kept;
        return -1;
    }
    pipe_input = ends[1];
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (int index = 0; index < count; index++) {
        if (sigaction(signals[index], &action, NULL) != 0) {
            // The pipe stays open: handlers installed so far write into it.
            return -1;
        }
    }
    return ends[0];
}

#ifndef WEIR_SIGNAL_PIPE_H
#define WEIR_SIGNAL_PIPE_H

/// Opens a pipe and has each of the signals write its number into it, one byte for each time it comes.
///
/// The handler is C because it may do nothing but what is safe in a signal handler, which Swift does not promise. It
/// serves whichever thread the system picks, so that no thread needs to block the signals. Once for a process.
///
/// Returns the end to read from, or -1 with errno set.
int weir_signal_pipe_open(const int *signals, int count);

#endif

/// Simulates power loss, a full disk and a read-only disk for one process.
///
/// The library is preloaded (LD_PRELOAD) and wraps the system calls on the files of one folder. All calls pass unchanged until
/// the control file says otherwise.
///
/// FAULTY_DISK_FOLDER names the folder, with a slash at its end; FAULTY_DISK_CONTROL names a file with the fields below, which
/// the test reads and writes while the process runs.
#ifndef FAULTY_DISK_H
#define FAULTY_DISK_H

#include <stdint.h>

struct faulty_disk_control {
    /// Writes, truncations and syncs of the folder's files, and sends to sockets, so far.
    uint64_t events;
    /// Sends to sockets so far.
    uint64_t sends;
    /// The process ends after this event, or after this send; 0 for never.
    uint64_t end_at_event;
    uint64_t end_at_send;
    /// Which writes that were not synced survive the end: with 0 all (the process was killed), with 1 none (power was lost before
    /// any of them reached the disk), with another number some, chosen by that seed.
    uint64_t survivors;
    /// By how many bytes the files may grow.
    int64_t free_bytes;
    /// Whether every write fails as on a file system that was mounted read-only.
    uint64_t is_read_only;
};

#endif

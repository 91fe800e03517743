/// A disk that can lose power, run full or refuse writes, for one process that a test starts.
///
/// Built as a library of its own and loaded before all others (LD_PRELOAD), it stands between the process and the system's
/// calls for one folder's files. Until its control file says otherwise, everything goes through unchanged.
///
/// FAULTY_DISK_FOLDER names the folder, with a slash at its end; FAULTY_DISK_CONTROL a file with the fields below, which the
/// test reads and writes while the process runs.
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
    /// What the end leaves of writes that were not synced: 0 everything (the process was killed), 1 nothing (power was lost,
    /// and nothing had reached the disk), any other number some of them, chosen by it.
    uint64_t survivors;
    /// By how many bytes the files may still grow.
    int64_t room;
    /// Whether every write is refused as on a file system that was mounted read-only.
    uint64_t is_read_only;
};

#endif

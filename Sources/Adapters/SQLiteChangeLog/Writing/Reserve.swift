import ChangeLog
import Glibc
import LocalLog

/// The free disk space that uploads must leave for the later stages.
///
/// An acknowledged upload is written several times more: to `changes`, to `ordered`, to the tables and to a stream, each with
/// its write-ahead log. Without the reserve, uploads could fill the disk before any of that.
struct Reserve {
    /// A file on the disk.
    let path: String
    /// 0 for none.
    let bytes: Int

    /// The space that uploads may still use, in bytes; unlimited if `statvfs` fails.
    var available: Int {
        var status = statvfs()
        guard bytes > 0, statvfs(path, &status) == 0 else { return .max }
        let free = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        return free.overflow ? .max : Int(clamping: free.partialValue) - bytes
    }

    var refusal: ChangeLogError {
        ChangeLogError(
            .storageFull,
            message:
                "the free space on the disk of \(path) is down to the reserve of \(bytes) bytes for uploads that are "
                + "already acknowledged; free disk space",
            isRetriable: true)
    }
}

extension LogWriter {
    /// Removes and resolves appends that must not be written: those behind a failed append of their producer, and uploads that
    /// would use the reserve.
    func reject(_ appends: inout [Append]) {
        // Read once for a transaction, and only if it has uploads.
        var available: Int?
        appends.removeAll { append in
            if append.isBlocked {
                append.resolve(.failure(.producerFailed))
                return true
            }
            guard append.partitions.contains(where: { partitions.all[$0].topic == .uploads }) else { return false }
            let space = available ?? reserve.available
            guard append.size > space else {
                available = space == .max ? space : space - append.size
                return false
            }
            available = space
            append.resolve(.failure(reserve.refusal))
            return true
        }
    }
}

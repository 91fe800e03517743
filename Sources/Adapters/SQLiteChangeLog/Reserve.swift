import ChangeLog
import Glibc
import LocalLog

/// The room on the disk that uploads must leave to everything behind them.
///
/// What was acknowledged is written several times more: to `changes`, to `ordered`, to the tables and to a stream, each with
/// a write-ahead log of its own. Were uploads taken while there is room for them alone, none of that could be done.
struct Reserve {
    /// A file on the disk.
    let path: String
    /// How much must be left, in bytes.
    let bytes: Int

    /// What uploads may still take, in bytes; no bound where the system does not say.
    var available: Int {
        var status = statvfs()
        guard bytes > 0, statvfs(path, &status) == 0 else { return .max }
        let free = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        return free.overflow ? .max : Int(clamping: free.partialValue) - bytes
    }

    /// What an upload is told that there is no room for.
    var refusal: ChangeLogError {
        ChangeLogError(
            .storageFull,
            message: "the disk of \(path) has hardly more room than the reserve of \(bytes) bytes for what was "
                + "acknowledged before: make room",
            isRetriable: true)
    }
}

extension LogWriter {
    /// Takes out, and answers, what may not be written: what follows a failed record of its producer, and uploads that would
    /// go into the reserve.
    func refuse(_ appends: inout [Append]) {
        // Asked once a transaction, and only when there are uploads in it.
        var available: Int?
        appends.removeAll { append in
            if append.isBlocked {
                append.resolve(.failure(.producerFailed))
                return true
            }
            guard append.places.contains(where: { partitions.all[$0].topic == .uploads }) else { return false }
            let room = available ?? reserve.available
            guard append.size > room else {
                available = room == .max ? room : room - append.size
                return false
            }
            available = room
            append.resolve(.failure(reserve.refusal))
            return true
        }
    }
}

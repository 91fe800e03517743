import Glibc

/// The folder of a process's data, locked by one process at a time.
package final class DataFolder: Sendable {
    /// Why the folder cannot be used.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    package let path: String
    /// The lock file: the system releases the lock when the process ends, however it ends.
    private let descriptor: Int32

    /// Locks a folder that holds a log.
    package convenience init(existing path: String) throws(Failure) {
        guard access(path + "/log.db", F_OK) == 0 else {
            throw Failure(description: "there is no log in \(path): \(Self.reason); name another with --data")
        }
        try self.init(path: path)
    }

    /// Creates the folder when it is missing, and locks it.
    ///
    /// - Parameter flag: the flag that sets another folder, for messages.
    package init(path: String, namedBy flag: String = "--data") throws(Failure) {
        let advice = "name another with \(flag)"
        self.path = path
        if mkdir(path, 0o700) != 0, errno != EEXIST {
            throw Failure(description: "the data folder \(path) cannot be made: \(Self.reason); \(advice)")
        }
        let descriptor = open(path + "/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw Failure(description: "the data folder \(path) cannot be written: \(Self.reason); \(advice)")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let reason = errno == EWOULDBLOCK ? "another weir uses it" : Self.reason
            _ = close(descriptor)
            throw Failure(description: "the data folder \(path) cannot be locked: \(reason); \(advice)")
        }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Releases the lock before the last reference is gone; nothing may use the folder any more.
    package func unlock() { flock(descriptor, LOCK_UN) }

    /// Refuses tables without their log: a new log would start a new epoch, which the tables do not have.
    package static func refuse(tables: String, withoutLog log: String) throws(Failure) {
        guard access(log, F_OK) != 0, errno == ENOENT, access(tables, F_OK) == 0 else { return }
        throw Failure(
            description: "\(log) is missing while \(tables) is there: restore the log from the same backup as the "
                + "tables, or begin a new history in an empty folder, named with --data")
    }

    private static var reason: String { String(cString: strerror(errno)) }
}

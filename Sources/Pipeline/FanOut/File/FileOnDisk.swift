import Glibc

/// File operations by path.
enum FileOnDisk {
    /// Identifies a file independently of its name.
    struct Identity: Sendable, Hashable {
        fileprivate let device: UInt64
        fileprivate let number: UInt64
    }

    /// `nil` when there is no file at this path.
    static func identity(of path: String) -> Identity? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return Identity(device: UInt64(truncatingIfNeeded: status.st_dev), number: UInt64(status.st_ino))
    }

    /// In bytes; 0 when there is no file at this path.
    static func size(of path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : 0
    }

    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    static func isWritable(_ path: String) -> Bool { access(path, R_OK | W_OK) == 0 }

    /// Deletes a database with its WAL and shared memory; missing files are ignored.
    static func deleteDatabase(_ path: String) throws(StreamFailure) {
        // The database first, so that an interrupted deletion never leaves a database without its WAL.
        for name in [path, path + "-wal", path + "-shm"] where unlink(name) != 0 && errno != ENOENT {
            throw .unavailable("\(name) could not be deleted: \(String(cString: strerror(errno)))")
        }
    }

    /// Creates a folder and its parents if missing.
    static func makeFolder(_ path: String) throws(StreamFailure) {
        if exists(path) { return }
        if let slash = path.lastIndex(of: "/"), slash > path.startIndex { try makeFolder(String(path[..<slash])) }
        // Another process may have created it in the meantime.
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            throw .unavailable("the folder \(path) could not be created: \(String(cString: strerror(errno)))")
        }
    }
}

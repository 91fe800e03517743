import Glibc

/// What the system does with files by their paths.
enum FileOnDisk {
    /// A file, whatever its name.
    struct Identity: Sendable, Hashable {
        fileprivate let device: UInt64
        fileprivate let number: UInt64
    }

    /// Which file has this name now, `nil` where there is none.
    static func identity(of path: String) -> Identity? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return Identity(device: UInt64(truncatingIfNeeded: status.st_dev), number: UInt64(status.st_ino))
    }

    /// Whether there is something with this name.
    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Whether this process may read and write the file.
    static func isWritable(_ path: String) -> Bool { access(path, R_OK | W_OK) == 0 }

    /// Deletes a database and what belongs to it; files that do not exist are none to delete.
    static func deleteDatabase(_ path: String) throws(StreamFailure) {
        // The database first: what is left of an interrupted deletion then never looks like a database.
        for name in [path, path + "-wal", path + "-shm"] where unlink(name) != 0 && errno != ENOENT {
            throw .unavailable("\(name) could not be deleted: \(String(cString: strerror(errno)))")
        }
    }

    /// Makes a folder, and those above it, unless it exists.
    static func makeFolder(_ path: String) throws(StreamFailure) {
        if exists(path) { return }
        if let slash = path.lastIndex(of: "/"), slash > path.startIndex { try makeFolder(String(path[..<slash])) }
        // Another process may have made it meanwhile.
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            throw .unavailable("the folder \(path) could not be made: \(String(cString: strerror(errno)))")
        }
    }
}

import Glibc

/// A database of the data folder with the files that SQLite keeps beside it.
struct DatabaseFiles {
    /// Why a file could not be moved or removed.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    let path: String

    private var names: [String] { [path, path + "-wal", path + "-shm"] }

    /// Whether the database is there.
    var exists: Bool { access(path, F_OK) == 0 }

    /// Removes what is there.
    func remove() throws(Failure) {
        for name in names where unlink(name) != 0 && errno != ENOENT {
            throw Failure(description: "\(name) cannot be removed: \(String(cString: strerror(errno)))")
        }
    }

    /// Gives what is there another name, which must be free.
    func move(to other: String) throws(Failure) {
        for (name, target) in zip(names, DatabaseFiles(path: other).names) {
            guard rename(name, target) == 0 || errno == ENOENT else {
                throw Failure(
                    description: "\(name) cannot be moved to \(target): \(String(cString: strerror(errno)))")
            }
        }
    }
}

import AsyncPrimitives
import ChangeLog
import Glibc

/// Creates a folder and its missing parents, for this user alone; one that exists is kept as it is.
func createFolder(_ path: String) throws(FolderFailure) {
    if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
    let parent = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[..<$0]) } ?? ""
    guard errno == ENOENT, !parent.isEmpty, parent != path else {
        throw FolderFailure(path: path, reason: String(cString: strerror(errno)))
    }
    try createFolder(parent)
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
        throw FolderFailure(path: path, reason: String(cString: strerror(errno)))
    }
}

/// Why a folder could not be created.
struct FolderFailure: Error, CustomStringConvertible {
    let path: String
    let reason: String

    var description: String { "\(path) cannot be made: \(reason)" }
}

/// A database of the data folder with the files that SQLite keeps beside it.
struct DatabaseFiles {
    /// Why a file could not be moved or removed.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    let path: String

    private var names: [String] { [path, path + "-wal", path + "-shm"] }

    var exists: Bool { access(path, F_OK) == 0 }

    /// Removes the files that exist.
    func remove() throws(Failure) {
        for name in names where unlink(name) != 0 && errno != ENOENT {
            throw Failure(description: "\(name) cannot be removed: \(String(cString: strerror(errno)))")
        }
    }

    /// Runs a body that creates the database, and removes it before and afterwards.
    func whileTemporary<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        // An interrupted run may have left one.
        try remove()
        let result = await Result.capturing(body)
        try remove()
        return try result.get()
    }

    /// Renames the files that exist; the new names must be free.
    func move(to other: String) throws(Failure) {
        for (name, target) in zip(names, DatabaseFiles(path: other).names) {
            guard rename(name, target) == 0 || errno == ENOENT else {
                throw Failure(
                    description: "\(name) cannot be moved to \(target): \(String(cString: strerror(errno)))")
            }
        }
    }
}

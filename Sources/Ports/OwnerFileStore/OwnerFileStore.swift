import SyncModel

/// Keeps one opaque file of each owner, in chunks, beside the record store: a copy of a device's database, from which a new device starts.
///
/// Nothing of ordering, and nothing else depends on it. A file is uploaded under a generation of its own and becomes the owner's file
/// in one step, if it is not older than that one. What it replaces, and uploads that were not completed, are removed a while later.
package protocol OwnerFileStore: Sendable {
    /// The owner's file; `nil` if there is none of this history.
    func file(of owner: SyncID) async throws(OwnerFileError) -> OwnerFile?

    /// Begins an upload, whose bytes count for the quota from now on.
    ///
    /// An unfinished upload of the same device is removed.
    ///
    /// - Throws: ``OwnerFileError/Code/full``, ``OwnerFileError/Code/tooManyUploads``.
    func begin(_ device: Device, byteCount: Int) async throws(OwnerFileError) -> OwnerFileUpload

    /// Stores the next chunk; all but the last have ``OwnerFile/chunkSize`` bytes.
    ///
    /// - Throws: ``OwnerFileError/Code/gone`` if the upload was removed.
    func append(_ chunk: [UInt8], number: Int, to upload: OwnerFileUpload) async throws(OwnerFileError)

    /// Makes an upload whose chunks are all stored the owner's file, unless that has newer rows.
    ///
    /// - Throws: ``OwnerFileError/Code/gone`` if the upload was removed.
    func commit(
        _ upload: OwnerFileUpload, newest: TimeStamp, digest: [UInt8]
    ) async throws(OwnerFileError) -> OwnerFileCommit

    /// Removes an upload that is not completed.
    func discard(_ upload: OwnerFileUpload) async throws(OwnerFileError)

    /// Reads a chunk; `nil` once the file was replaced or removed.
    func chunk(_ number: Int, of file: OwnerFile) async throws(OwnerFileError) -> [UInt8]?

    /// Removes the owner's file and its uploads.
    ///
    /// - Returns: whether there was a file of this history.
    func remove(_ owner: SyncID) async throws(OwnerFileError) -> Bool

    /// Removes what replaced files left, and uploads without a new chunk for so many seconds.
    func collect(idleFor seconds: Int) async throws(OwnerFileError)

    func close() async
}

/// An owner's file.
package struct OwnerFile: Sendable, Hashable {
    /// Of all chunks but the last.
    package static let chunkSize = 256 << 10

    package let owner: SyncID
    /// Never used again.
    package let generation: Int64
    package let byteCount: Int
    /// Up to where it has the owner's rows.
    package let newest: TimeStamp
    /// SHA-256 of its bytes.
    package let digest: [UInt8]

    package init(owner: SyncID, generation: Int64, byteCount: Int, newest: TimeStamp, digest: [UInt8]) {
        self.owner = owner
        self.generation = generation
        self.byteCount = byteCount
        self.newest = newest
        self.digest = digest
    }
}

/// A file that is being uploaded.
package struct OwnerFileUpload: Sendable, Hashable {
    package let owner: SyncID
    package let generation: Int64
    package let byteCount: Int

    package init(owner: SyncID, generation: Int64, byteCount: Int) {
        self.owner = owner
        self.generation = generation
        self.byteCount = byteCount
    }
}

/// What became of a completed upload.
package enum OwnerFileCommit: Sendable, Hashable {
    /// It is the owner's file.
    case stored(OwnerFile)
    /// The owner's file has newer rows, and stays; the upload is removed.
    case older(than: OwnerFile)
}

/// What a store keeps at most.
package struct OwnerFileLimits: Sendable, Hashable {
    /// Of all files and uploads in one database, and of what is being removed.
    package var totalBytes: Int
    /// Unfinished uploads of one owner.
    package var uploadsOfOwner = 4

    package init(totalBytes: Int) { self.totalBytes = totalBytes }
}

/// A file cannot be stored or read.
package struct OwnerFileError: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Code: Sendable, Hashable {
        /// There is no room for so many bytes.
        case full
        /// The owner has as many unfinished uploads as it may.
        case tooManyUploads
        /// The upload was removed: the same device began another one, the owner's files were removed, or it was idle for too long.
        case gone
        /// The store cannot be reached now.
        case unavailable
    }

    package let code: Code
    /// For operators.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }
}

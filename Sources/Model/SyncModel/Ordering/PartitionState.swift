/// Where a delivery of `uploads` stands: the highest record and part that was ordered.
package struct UploadProgress: Sendable, Hashable, Comparable {
    /// The offset in the partition of `uploads`.
    package let offset: Int64
    /// The part of the batch.
    package let part: Int

    /// Names a place.
    package init(offset: Int64, part: Int) {
        self.offset = offset
        self.part = part
    }

    /// By offset, then part.
    package static func < (left: Self, right: Self) -> Bool {
        (left.offset, left.part) < (right.offset, right.part)
    }
}

/// Everything that ordering carries from one message of a partition to the next, besides rows and device progress.
package struct PartitionState: Sendable, Hashable {
    /// The offset in `changes` of the next message.
    package var nextOffset: Int64
    /// The newest timeStamp given.
    package var timeStamp: TimeStamp
    /// For each partition of `uploads` the highest (offset, part) seen of this epoch (I2).
    package var uploads: [Int: UploadProgress]
    /// The greatest schema ordinal that a message named: rows have all columns of that version.
    package var schemaOrdinal: Int

    /// Makes a state; that of an empty partition by default.
    package init(
        nextOffset: Int64 = 0, timeStamp: TimeStamp = .zero, uploads: [Int: UploadProgress] = [:],
        schemaOrdinal: Int = 0
    ) {
        self.nextOffset = nextOffset
        self.timeStamp = timeStamp
        self.uploads = uploads
        self.schemaOrdinal = schemaOrdinal
    }

    /// Whether a part was ordered before: deliveries may repeat, and only go up.
    package func hasSeen(_ part: ChangePart) -> Bool {
        guard let seen = uploads[part.upload.partition] else { return false }
        return UploadProgress(offset: part.upload.offset, part: part.part) <= seen
    }
}

/// The versions of the schema that a history has had, by number and by hash.
package struct SchemaHistory: Sendable, Hashable {
    /// A version and its tables.
    package struct Entry: Sendable, Hashable {
        /// The version.
        package let version: SchemaVersion
        /// Its tables.
        package let schema: Schema

        /// Makes an entry.
        package init(version: SchemaVersion, schema: Schema) {
            self.version = version
            self.schema = schema
        }
    }

    /// All versions in the order of their ordinals, which are 1, 2, 3 ….
    package private(set) var entries: [Entry] = []
    /// Keyed by the hash's bytes, as messages spell it.
    private var byHash: [[UInt8]: Int] = [:]

    /// Makes a history without versions.
    package init() {}

    /// Adds the next version; traps when its ordinal is not the next.
    package mutating func append(_ entry: Entry) {
        precondition(entry.version.ordinal == entries.count + 1, "schema versions are numbered without gaps")
        if byHash[Array(entry.version.hash.utf8)] == nil { byHash[Array(entry.version.hash.utf8)] = entries.count }
        entries.append(entry)
    }

    /// The newest version.
    package var newest: Entry? { entries.last }

    /// The oldest version with this hash.
    ///
    /// A schema may return to what it was, under a new ordinal and the same hash: the answer must not depend on how many
    /// of the versions a worker knows (I4).
    package subscript(hash: String) -> Entry? { byHash[Array(hash.utf8)].map { entries[$0] } }

    /// The version with this number.
    package subscript(ordinal: Int) -> Entry? { entries.indices.contains(ordinal - 1) ? entries[ordinal - 1] : nil }
}

/// Where a delivery of `uploads` stands: the highest record and part that was ordered.
public struct UploadProgress: Sendable, Hashable, Comparable {
    /// The offset in the partition of `uploads`.
    public let offset: Int64
    /// The part of the batch.
    public let part: Int

    /// Names a place.
    public init(offset: Int64, part: Int) {
        self.offset = offset
        self.part = part
    }

    /// By offset, then part.
    public static func < (left: Self, right: Self) -> Bool {
        (left.offset, left.part) < (right.offset, right.part)
    }
}

/// Everything that ordering carries from one message of a partition to the next, besides rows and device progress.
public struct PartitionState: Sendable, Hashable {
    /// The offset in `changes` of the next message.
    public var nextOffset: Int64
    /// The newest timeStamp given.
    public var timeStamp: TimeStamp
    /// For each partition of `uploads` the highest (offset, part) seen of this epoch (I2).
    public var uploads: [Int: UploadProgress]
    /// The greatest schema ordinal that a message named: rows have all columns of that version.
    public var schemaOrdinal: Int

    /// Makes a state; that of an empty partition by default.
    public init(
        nextOffset: Int64 = 0, timeStamp: TimeStamp = .zero, uploads: [Int: UploadProgress] = [:],
        schemaOrdinal: Int = 0
    ) {
        self.nextOffset = nextOffset
        self.timeStamp = timeStamp
        self.uploads = uploads
        self.schemaOrdinal = schemaOrdinal
    }

    /// Whether a part was ordered before: deliveries may repeat, and only go up.
    public func hasSeen(_ part: ChangePart) -> Bool {
        guard let seen = uploads[part.upload.partition] else { return false }
        return UploadProgress(offset: part.upload.offset, part: part.part) <= seen
    }
}

/// The versions of the schema that a history has had, by number and by hash.
public struct SchemaHistory: Sendable, Hashable {
    /// A version and its tables.
    public struct Entry: Sendable, Hashable {
        /// The version.
        public let version: SchemaVersion
        /// Its tables.
        public let schema: Schema

        /// Makes an entry.
        public init(version: SchemaVersion, schema: Schema) {
            self.version = version
            self.schema = schema
        }
    }

    /// All versions in the order of their ordinals, which are 1, 2, 3 ….
    public private(set) var entries: [Entry] = []
    /// Keyed by the hash's bytes, as messages spell it.
    private var byHash: [[UInt8]: Int] = [:]

    /// Makes a history without versions.
    public init() {}

    /// Adds the next version; traps when its ordinal is not the next.
    public mutating func append(_ entry: Entry) {
        precondition(entry.version.ordinal == entries.count + 1, "schema versions are numbered without gaps")
        if byHash[Array(entry.version.hash.utf8)] == nil { byHash[Array(entry.version.hash.utf8)] = entries.count }
        entries.append(entry)
    }

    /// The newest version.
    public var newest: Entry? { entries.last }

    /// The oldest version with this hash.
    ///
    /// A schema may return to what it was, under a new ordinal and the same hash: the answer must not depend on how many
    /// of the versions a worker knows (I4).
    public subscript(hash: String) -> Entry? { byHash[Array(hash.utf8)].map { entries[$0] } }

    /// The version with this number.
    public subscript(ordinal: Int) -> Entry? { entries.indices.contains(ordinal - 1) ? entries[ordinal - 1] : nil }
}

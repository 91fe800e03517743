/// A schema version: its number in `control`, which only grows, and the hash by which records and clients name it (I4).
package struct SchemaVersion: Sendable, Hashable {
    /// 1, 2, 3 … without gaps.
    package let ordinal: Int
    /// 32 lower-case hexadecimal digits: a hash of the version's canonical form.
    package let hash: String

    package init(ordinal: Int, hash: String) {
        self.ordinal = ordinal
        self.hash = hash
    }

    /// Whether a text has the form of ``hash``.
    package static func isHash(_ text: String) -> Bool {
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        let letters = UInt8(ascii: "a")...UInt8(ascii: "f")
        return text.utf8.count == 32 && text.utf8.allSatisfy { digits.contains($0) || letters.contains($0) }
    }
}

/// All known schema versions, by ordinal and by hash.
package struct SchemaHistory: Sendable, Hashable {
    package struct Entry: Sendable, Hashable {
        package let version: SchemaVersion
        package let schema: Schema

        package init(version: SchemaVersion, schema: Schema) {
            self.version = version
            self.schema = schema
        }
    }

    /// By ordinal: 1, 2, 3 … without gaps.
    package private(set) var entries: [Entry] = []
    /// Keyed by the bytes of the hash.
    private var byHash: [[UInt8]: Int] = [:]

    package init() {}

    /// Traps when the ordinal is not the next.
    package mutating func append(_ entry: Entry) {
        precondition(entry.version.ordinal == entries.count + 1, "schema versions are numbered without gaps")
        if byHash[Array(entry.version.hash.utf8)] == nil { byHash[Array(entry.version.hash.utf8)] = entries.count }
        entries.append(entry)
    }

    package var newest: Entry? { entries.last }

    /// The oldest version with this hash.
    ///
    /// A later version may equal an earlier one and then has the same hash. The result must not depend on how many
    /// versions a worker knows (I4).
    package subscript(hash: String) -> Entry? { byHash[Array(hash.utf8)].map { entries[$0] } }

    package subscript(ordinal: Int) -> Entry? { entries.indices.contains(ordinal - 1) ? entries[ordinal - 1] : nil }
}

/// Waits, without polling, until the schema versions known to the process meet a condition.
///
/// The condition is evaluated immediately and for every new version. Throws `CancellationError` when the task is
/// cancelled.
package typealias SchemaWait = @Sendable (_ isMet: @escaping @Sendable (SchemaHistory) -> Bool) async throws -> Void

extension SchemaHistory {
    /// For a process whose schema versions never change: waits until the task is cancelled.
    package static let noFurtherVersions: SchemaWait = { _ in
        let (never, end) = AsyncStream.makeStream(of: Void.self)
        for await _ in never {}
        end.finish()
        throw CancellationError()
    }
}

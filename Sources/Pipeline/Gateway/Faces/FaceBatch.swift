import FanOutLink
import JSONText
import SyncModel

package typealias StreamSelection = StreamQuery.Selection

/// Changes that a face makes of one request.
package struct FaceBatch: Sendable {
    /// A JSON array as in the client contract.
    private(set) var json: [UInt8] = [UInt8(ascii: "[")]
    package private(set) var count = 0
    /// The changes that the limit of a batch counts.
    package private(set) var limitedCount = 0
    /// The changes that the face has refused itself, and their size.
    package private(set) var refusedCount = 0
    package private(set) var refusedBytes = 0
    /// Whether a conflict or refusal of one change applies none.
    package var isAtomic: Bool

    /// Which columns the changes write.
    private var written: Set<WrittenColumns> = []

    private struct WrittenColumns: Hashable {
        let table: Int
        /// `nil` where they are not the table's first ones.
        let count: Int?
    }

    package init(isAtomic: Bool = false) { self.isAtomic = isAtomic }

    /// Adds a change as the client contract has it.
    ///
    /// - Parameters:
    ///   - isLimited: whether the limit of changes counts it; not for one that the face adds to what was asked for, such as a condition.
    ///   - write: the members of the change: `table`, `id`, `values`, ….
    package mutating func add(isLimited: Bool = true, _ write: (inout JSONWriter) -> Void) {
        var writer = JSONWriter(capacity: 256)
        writer.object(write)
        add(json: writer.take(), isLimited: isLimited)
    }

    /// Adds a change as the client contract has it.
    package mutating func add(json change: [UInt8], isLimited: Bool = true) {
        if count > 0 { json.append(UInt8(ascii: ",")) }
        json.append(contentsOf: change)
        count += 1
        if isLimited { limitedCount += 1 }
    }

    /// Adds changes that the face has refused itself: they count for the rates, as those that ingest refuses.
    package mutating func addRefused(_ count: Int, bytes: Int) {
        refusedCount += count
        refusedBytes += bytes
    }

    /// Notes which columns the last change writes.
    package mutating func note(_ values: [FaceValue?], of table: FaceTable) {
        note(values.map { $0 != nil }, of: table.index)
    }

    /// Notes which columns the last change writes.
    ///
    /// - Parameter isWritten: by column.
    package mutating func note(_ isWritten: [Bool], of table: Int) {
        guard isWritten.contains(true) else { return }
        let count = isWritten.prefix { $0 }.count
        let isFirst = !isWritten.dropFirst(count).contains(true)
        written.insert(WrittenColumns(table: table, count: isFirst ? count : nil))
    }

    /// The schema version under which the changes are submitted: the newest whose tables have exactly the columns that they write.
    ///
    /// An app that was made for an earlier version does not know later columns: a row that it wrote is exactly as it sent it, whatever
    /// these have. Under the newest version the row would lack columns, and be sent to the app again, over what its user has done since.
    func version(upTo newest: SchemaHistory.Entry, in history: SchemaHistory) -> SchemaHistory.Entry {
        if written.isEmpty { return newest }
        let tables = newest.schema.tables
        return history.entries.prefix(newest.version.ordinal).last { entry in
            written.allSatisfy { written in
                guard let count = written.count, written.table < entry.schema.tables.count else { return false }
                // Equal but for the later columns: the change is decided as under the newest version.
                let (then, now) = (entry.schema.tables[written.table], tables[written.table])
                return then.policy == now.policy && then.columns.elementsEqual(now.columns.prefix(count))
            }
        } ?? newest
    }

    consuming func finish() -> [UInt8] { json + [UInt8(ascii: "]")] }
}

/// What became of a ``FaceBatch``.
package struct FaceOutcome: Sendable {
    /// What became of one change.
    package enum Status: Sendable, Hashable {
        /// The row's newest timeStamp and version; zeros where a delete had no row to delete.
        case applied(TimeStamp, version: Int64)
        /// The values were stored, and the row is and stays deleted.
        case deleted(TimeStamp, version: Int64)
        /// Nothing was stored.
        case conflict
        case refused(RefusalCode, String)
    }

    package struct Result: Sendable {
        package var status: Status
        /// The server's row for a conflict or refusal, as it was after the batch or later; `nil` where there is none.
        package var row: FaceRow?

        package init(status: Status, row: FaceRow? = nil) {
            self.status = status
            self.row = row
        }
    }

    /// One of each change, in their order.
    package var results: [Result]
    /// The newest timeStamp of the caller's stream that has all this.
    package var head: TimeStamp

    package init(results: [Result], head: TimeStamp) {
        self.results = results
        self.head = head
    }
}

extension FaceOutcome.Status {
    init(_ status: ChangeResult.Status) {
        switch status {
        case .applied(let timeStamp, let version, _): self = .applied(timeStamp, version: version)
        case .deleted(let timeStamp, let version, _): self = .deleted(timeStamp, version: version)
        case .conflict: self = .conflict
        case .refused(let code, let message): self = .refused(code, message)
        }
    }
}

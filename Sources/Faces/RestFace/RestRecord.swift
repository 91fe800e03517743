import Gateway
import JSON
import JSONText
import SyncModel

/// A record that a client sends.
struct RestRecord: Sendable {
    let id: RowID
    /// `nil` where it has none, or null.
    let ts: TimeStamp?
    let isDeleted: Bool
    /// By column; `nil` for one that the record does not have.
    let values: [FaceValue?]

    /// Whether a name is one of the protocol; databases on devices do not distinguish cases.
    static func isReserved(_ name: String) -> Bool { ["id", "ts", "deleted"].contains(name.lowercased()) }

    /// - Throws: ``ProblemCode/changeRefused``, with the code of a refused change.
    init(_ value: borrowing JSONValue, of table: Table, limits: SyncLimits) throws(FaceRefusal) {
        guard var members = value.members else { throw FaceRefusal(.invalidChange, "a record is an object") }
        if value.repeatedMember != nil { throw FaceRefusal(.invalidChange, "a name stands there twice") }
        var id: RowID?
        var ts: TimeStamp?
        var isDeleted = false
        var values: [FaceValue?] = Array(repeating: nil, count: table.columns.count)
        while let member = members.next() {
            if member.isNamed("id") {
                id = try RowID(member.value, named: "id")
            } else if member.isNamed("Ts") {
                ts = try Self.ts(member.value)
            } else if member.isNamed("Deleted") {
                guard let flag = member.value.isNull ? false : member.value.bool else {
                    throw FaceRefusal(.invalidChange, "Deleted is true or false")
                }
                isDeleted = flag
            } else if let column = table.column(named: member.name.bytes) {
                values[column] = try FaceValue(member.value, for: table.columns[column], limits: limits)
            } else {
                throw FaceRefusal.unknownColumn(member, of: table)
            }
        }
        guard let id else { throw FaceRefusal(.invalidChange, "id is missing") }
        self.id = id
        self.ts = ts
        self.isDeleted = isDeleted
        self.values = values
    }

    private static func ts(_ value: borrowing JSONValue) throws(FaceRefusal) -> TimeStamp? {
        if value.isNull { return nil }
        guard let number = value.int64, let ts = TimeStamp(rawValue: number) else {
            throw FaceRefusal(.invalidChange, "Ts is an integer from 0 to 2^53-1")
        }
        return ts == .zero ? nil : ts
    }

    /// Whether a row is what the record says, and was last written by the device: the request was sent before.
    func isRepeated(by row: FaceRow, of table: Table) -> Bool {
        row.writer == .device && row.isDeleted == isDeleted && row.has(values, in: table)
    }

    /// Whether it has every column.
    var isWhole: Bool { values.allSatisfy { $0 != nil } }

    /// Writes the record as it is stored with a new `Ts`.
    ///
    /// - Parameter row: what the columns that the record lacks have; `nil` for a new row.
    func write(of table: Table, ts: TimeStamp, over row: FaceRow?, to writer: inout JSONWriter) {
        let stored = row?.values(in: table)
        writer.object { writer in
            writer.member("id", id.text)
            for (index, column) in table.columns.enumerated() {
                writer.name(column.name)
                if let value = values[index] {
                    writer.raw(value.canonical)
                } else if let stored {
                    writer.raw(Array(stored[index]))
                } else {
                    writer.raw(column.defaultValue ?? Array("null".utf8))
                }
            }
            writer.member("Ts", ts.rawValue)
            writer.member("Deleted", isDeleted)
        }
    }
}

extension JSONWriter {
    /// Writes a row as a record.
    mutating func record(_ row: FaceRow, _ table: Table) {
        object { writer in
            writer.name("id")
            row.writeID(to: &writer)
            row.writeColumns(of: table, to: &writer)
            writer.name("Ts")
            row.writeTimeStamp(to: &writer)
            writer.member("Deleted", row.isDeleted)
        }
    }
}

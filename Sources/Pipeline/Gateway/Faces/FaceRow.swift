import FanOutLink
import JSON
import JSONText
import SyncModel

/// A row of the caller, as a stream has it.
package struct FaceRow: Sendable, Hashable {
    /// The table's index in the schema.
    package let table: Int
    package let id: RowID
    package let timeStamp: TimeStamp
    package let version: Int64
    package let isDeleted: Bool
    /// The log's time of the creation, microseconds since 1970; `nil` for the row of a conflict or refusal.
    package let createdAt: Int64?
    /// As the client contract has it; `nil` unless the table is under lastWriteWins.
    package let updatedAt: String?
    /// The device that made it.
    package let creator: KnowledgeID
    /// The device of its newest version.
    package let writer: Device
    /// Whether its last writer has all its columns as they are; `nil` for the row of a conflict or refusal.
    package let isExact: Bool?
    /// The columns of the schema version in which it was last written, each as canonical JSON.
    private let bytes: [UInt8]
    private let ranges: [Range<Int>]

    /// The canonical JSON of a column; one that is newer than the row has its default.
    package func value(_ column: Int, in table: Table) -> ArraySlice<UInt8> {
        if column < ranges.count { return bytes[ranges[column]] }
        return (table.columns[column].defaultValue ?? Array("null".utf8))[...]
    }

    /// Writes every column of a table as a member, by its name.
    package func writeColumns(of table: Table, to writer: inout JSONWriter) {
        for (index, column) in table.columns.enumerated() {
            writer.name(column.name)
            writer.raw(Array(value(index, in: table)))
        }
    }

    init(_ root: borrowing JSONValue, table: Int, createdAt: Int64?, isExact: Bool?) throws(Problem) {
        func fault() -> Problem { Problem(.notReady, "a row of the stream cannot be read") }
        func text(_ name: StaticString, _ object: borrowing JSONValue) throws(Problem) -> String {
            guard let text = object.member(named: name)?.string else { throw fault() }
            return text.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
        }
        guard let time = root.member(named: "timeStamp")?.int64, let timeStamp = TimeStamp(rawValue: time),
            let version = root.member(named: "version")?.int64, let isDeleted = root.member(named: "deleted")?.bool,
            let id = RowID(try text("id", root)), let creator = KnowledgeID(try text("knowledgeId", root)),
            let author = root.member(named: "writer"), let caller = SyncID(try text("syncId", author)),
            let device = KnowledgeID(try text("knowledgeId", author)),
            var members = root.member(named: "values")?.members
        else { throw fault() }
        self.table = table
        self.id = id
        self.timeStamp = timeStamp
        self.version = version
        self.isDeleted = isDeleted
        self.createdAt = createdAt
        self.isExact = isExact
        self.creator = creator
        writer = Device(caller: caller, knowledgeID: device)
        updatedAt = root.member(named: "updatedAt") == nil ? nil : try text("updatedAt", root)
        var bytes: [UInt8] = []
        var ranges: [Range<Int>] = []
        while let member = members.next() {
            let start = bytes.count
            bytes.append(member.value.sourceBytes)
            ranges.append(start..<bytes.count)
        }
        self.bytes = bytes
        self.ranges = ranges
    }
}

/// Reads rows as streams have them.
struct FaceRowReader: ~Copyable {
    private var parser = JSONParser()

    mutating func row(_ row: StreamRow) throws -> FaceRow {
        try read(row.json, table: row.table, createdAt: row.createdAt, isExact: row.isExact)
    }

    mutating func read(
        _ json: [UInt8], table: Int, createdAt: Int64? = nil, isExact: Bool? = nil
    ) throws -> FaceRow {
        try parser.withDocument(json.span) { document in
            try FaceRow(document.root, table: table, createdAt: createdAt, isExact: isExact)
        }
    }
}

import Gateway
import JSON
import JSONText
import SyncModel

/// One change of an upload.
struct SQLiteNowChange: Sendable {
    /// Identifies it among those of its device.
    let number: Int64
    /// The version that the device edited.
    let base: Int64
    let isDelete: Bool
    let table: Int
    let id: RowID
    /// Which columns it writes.
    let writes: [Bool]
    /// As the client contract has it.
    let json: [UInt8]

    /// Reads a change.
    ///
    /// - Throws: ``SQLiteNowRefusal`` for its status `invalid`, and for one without a number.
    init(
        _ value: borrowing JSONValue, _ spelling: SQLiteNowSpelling, _ schema: Schema, schemaName: String?
    ) throws(SQLiteNowRefusal) {
        let number = try Self.number(of: value, spelling)
        self.number = number
        func refusal(_ message: String) -> SQLiteNowRefusal { SQLiteNowRefusal(number: number, message) }
        if let repeated = value.repeatedMember {
            throw refusal("the member \(Self.text(repeated.name)) stands there twice")
        }
        if let schemaName {
            guard let given = Self.text("schema", of: value), given.utf8.elementsEqual(schemaName.utf8) else {
                throw refusal("schema must be \(schemaName)")
            }
        }
        guard let name = Self.text("table", of: value), let table = schema.tableIndex(ignoringCaseOf: name)
        else { throw refusal("there is no table of this name") }
        self.table = table
        guard let key = Self.text("pk", of: value), let id = RowID(key) else {
            throw refusal("pk must be a string of 1 to 255 bytes without NUL")
        }
        self.id = id
        let isDelete: Bool
        switch Self.text("op", of: value) {
        case "INSERT", "UPDATE": isDelete = false
        case "DELETE": isDelete = true
        default: throw refusal("op must be INSERT, UPDATE or DELETE")
        }
        self.isDelete = isDelete
        let base = try Self.base(of: value, spelling, number)
        self.base = base
        var writes = Array(repeating: false, count: schema.tables[table].columns.count)
        var writer = JSONWriter(capacity: 256)
        try writer.object { (writer) throws(SQLiteNowRefusal) in
            writer.member("table", schema.tables[table].name)
            writer.member("id", id.text)
            writer.member("base", base)
            writer.member("ifBase", "live")
            writer.member("changeId", "sqlitenow:\(number)")
            if isDelete {
                writer.member("deleted", true)
            } else {
                writer.name("values")
                try Self.writeValues(of: value, schema.tables[table], id, number, to: &writer, &writes)
            }
        }
        self.writes = writes
        json = writer.take()
    }

    static func number(
        of value: borrowing JSONValue, _ spelling: SQLiteNowSpelling
    ) throws(SQLiteNowRefusal) -> Int64 {
        let number =
            (spelling == .camel ? value.member(named: "sourceChangeId") : value.member(named: "source_change_id"))?
            .int64
        guard let number else {
            throw SQLiteNowRefusal(
                number: nil, "\(spelling.name("sourceChangeId", "source_change_id")) must be an integer")
        }
        return number
    }

    private static func base(
        of value: borrowing JSONValue, _ spelling: SQLiteNowSpelling, _ number: Int64
    ) throws(SQLiteNowRefusal) -> Int64 {
        let given = spelling == .camel ? value.member(named: "serverVersion") : value.member(named: "server_version")
        guard let given, !given.isNull else { return 0 }
        guard let base = given.int64, TimeStamp(rawValue: base) != nil else {
            throw SQLiteNowRefusal(
                number: number,
                "\(spelling.name("serverVersion", "server_version")) must be an integer from 0 to 2^53-1")
        }
        return base
    }

    /// Writes the values of the payload, which may have the primary key, too.
    private static func writeValues(
        of change: borrowing JSONValue, _ table: Table, _ id: RowID, _ number: Int64, to writer: inout JSONWriter,
        _ writes: inout [Bool]
    ) throws(SQLiteNowRefusal) {
        guard var members = change.member(named: "payload")?.members else {
            throw SQLiteNowRefusal(number: number, "payload must be an object")
        }
        writer.beginObject()
        while let member = members.next() {
            if member.isNamed("id") {
                guard member.value.string?.hasSameBytes(as: id.text.utf8.span) == true else {
                    throw SQLiteNowRefusal(number: number, "the payload's id must be pk")
                }
                continue
            }
            writer.name(member.name)
            let column = table.column(named: member.name.bytes)
            if let column { writes[column] = true }
            let type = column.map { table.columns[$0].type }
            // SQLite has no booleans.
            if type == .boolean, let bit = member.value.int64, bit == 0 || bit == 1 {
                writer.value(bit == 1)
            } else {
                var json: [UInt8] = []
                json.append(member.value.sourceBytes)
                writer.raw(json)
            }
        }
        writer.endObject()
    }

    private static func text(_ name: StaticString, of value: borrowing JSONValue) -> String? {
        guard let text = value.member(named: name)?.string else { return nil }
        return self.text(text)
    }

    private static func text(_ bytes: Span<UInt8>) -> String {
        bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }
}

/// Why a change cannot be read.
struct SQLiteNowRefusal: Error, Sendable {
    /// `nil` where the change has none.
    let number: Int64?
    let message: String

    init(number: Int64?, _ message: String) {
        self.number = number
        self.message = message
    }
}

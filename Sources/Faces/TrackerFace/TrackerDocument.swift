import Gateway
import JSON
import JSONText
import SyncModel

/// A document that a client uploads.
struct TrackerDocument: Sendable {
    /// `nil` where it has none, or null, as the times.
    let serverID: RowID?
    /// Microseconds since 1970.
    let createdOn: Int64?
    let updatedOn: Int64?
    let isDeleted: Bool
    /// By column; `nil` for one that the document does not have.
    let values: [FaceValue?]

    private static let reserved = ["serverid", "createdon", "updatedon", "updatedby", "deleted"]

    /// Whether a name is one of the protocol; databases on devices do not distinguish cases.
    static func isReserved(_ name: String) -> Bool { reserved.contains(name.lowercased()) }

    init(_ value: borrowing JSONValue, of table: Table, limits: SyncLimits) throws(FaceRefusal) {
        guard var members = value.members else { throw FaceRefusal(.invalidChange, "a document is an object") }
        if value.repeatedMember != nil { throw FaceRefusal(.invalidChange, "a name stands there twice") }
        var serverID: RowID?
        var (createdOn, updatedOn): (Int64?, Int64?)
        var isDeleted = false
        var values: [FaceValue?] = Array(repeating: nil, count: table.columns.count)
        while let member = members.next() {
            if member.isNamed("serverId") {
                serverID = member.value.isNull ? nil : try RowID(member.value, named: "serverId")
            } else if member.isNamed("createdOn") {
                createdOn = try Self.time(member.value, "createdOn")
            } else if member.isNamed("updatedOn") {
                updatedOn = try Self.time(member.value, "updatedOn")
            } else if member.isNamed("updatedBy") {
                // The server's is the device of the request.
                guard member.value.isNull || member.value.string != nil else {
                    throw FaceRefusal(.invalidChange, "updatedBy is a string")
                }
            } else if member.isNamed("deleted") {
                guard let flag = member.value.isNull ? false : member.value.bool else {
                    throw FaceRefusal(.invalidChange, "deleted is true or false")
                }
                isDeleted = flag
            } else if let column = table.column(named: member.name.bytes) {
                values[column] = try FaceValue(member.value, for: table.columns[column], limits: limits)
            } else {
                throw FaceRefusal.unknownColumn(member, of: table)
            }
        }
        (self.serverID, self.createdOn, self.updatedOn) = (serverID, createdOn, updatedOn)
        (self.isDeleted, self.values) = (isDeleted, values)
    }

    private static func time(_ value: borrowing JSONValue, _ name: String) throws(FaceRefusal) -> Int64? {
        if value.isNull { return nil }
        guard let text = value.string, let time = CanonicalTimestamp(text),
            ServerID.range.contains(time.microseconds)
        else {
            throw FaceRefusal(.invalidChange, "\(name) is a time in RFC 3339, from 1970 on, with at most six decimals")
        }
        return time.microseconds
    }

    /// What a new row has: null for a column that the document lacks, unless it has a default (`nil`).
    func creation(in table: Table) -> [FaceValue?] {
        zip(table.columns, values).map { column, value in
            if let value { return value }
            guard column.isNullable, column.defaultValue == nil else { return nil }
            return .null
        }
    }
}

extension JSONWriter {
    /// Writes a row as a document.
    mutating func document(_ row: FaceRow, _ table: Table) {
        object { writer in
            writer.name("serverId")
            row.writeID(to: &writer)
            row.writeColumns(of: table, to: &writer)
            writer.name("createdOn")
            if let createdOn = row.withIDText(ServerID.createdOn) { writer.time(createdOn) } else { writer.null() }
            writer.name("updatedOn")
            writer.time(row.timeStamp.rawValue)
            writer.name("updatedBy")
            row.writeWriter(to: &writer)
            writer.member("deleted", row.isDeleted)
        }
    }
}

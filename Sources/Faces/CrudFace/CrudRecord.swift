import Gateway
import JSON
import JSONText
import SyncModel

/// A record that a client sends.
struct CrudRecord: Sendable {
    /// `nil` where it has none, or null, as the other members.
    let id: RowID?
    let userID: String?
    /// Microseconds since 1970.
    let updatedAt: Int64?
    /// By column; `nil` for one that the record does not have.
    let values: [FaceValue?]

    private static let reserved = ["id", "created_at", "updated_at", "user_id", "sync_status"]
    private static let statuses = ["synced", "pendingCreate", "pendingUpdate", "pendingDelete"]

    /// Whether a name is one of the protocol; databases on devices do not distinguish cases.
    static func isReserved(_ name: String) -> Bool { reserved.contains(name.lowercased()) }

    init(_ value: borrowing JSONValue, of table: Table, limits: SyncLimits) throws(FaceRefusal) {
        guard var members = value.members else { throw FaceRefusal(.invalidChange, "a record is an object") }
        if value.repeatedMember != nil { throw FaceRefusal(.invalidChange, "a name stands there twice") }
        var id: RowID?
        var userID: String?
        var updatedAt: Int64?
        var values: [FaceValue?] = Array(repeating: nil, count: table.columns.count)
        while let member = members.next() {
            if member.isNamed("id") {
                id = member.value.isNull ? nil : try RowID(member.value, named: "id")
            } else if member.isNamed("user_id") {
                userID = try Self.text(member.value, "user_id")
            } else if member.isNamed("updated_at") {
                updatedAt = try Self.time(member.value, "updated_at")
            } else if member.isNamed("created_at") {
                // The server's is the log's.
                _ = try Self.text(member.value, "created_at")
            } else if member.isNamed("sync_status") {
                // What the client does is the method.
                guard try Self.text(member.value, "sync_status").map(Self.statuses.contains) ?? true else {
                    throw FaceRefusal(.invalidChange, "sync_status is \(Self.statuses.joined(separator: ", "))")
                }
            } else if let column = table.column(named: member.name.bytes) {
                values[column] = try FaceValue(member.value, for: table.columns[column], limits: limits)
            } else {
                throw FaceRefusal.unknownColumn(member, of: table)
            }
        }
        (self.id, self.userID, self.updatedAt, self.values) = (id, userID, updatedAt, values)
    }

    private static func text(_ value: borrowing JSONValue, _ name: String) throws(FaceRefusal) -> String? {
        if value.isNull { return nil }
        guard let text = value.string else { throw FaceRefusal(.invalidChange, "\(name) is a string, or null") }
        return text.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }

    private static func time(_ value: borrowing JSONValue, _ name: String) throws(FaceRefusal) -> Int64? {
        if value.isNull { return nil }
        guard let text = value.string, let time = CanonicalTimestamp(text) else {
            throw FaceRefusal(.invalidChange, "\(name) is a time in RFC 3339 with at most six decimals, or null")
        }
        return time.microseconds
    }

    /// Whether a row has every value that the record has.
    func isEqual(to row: FaceRow, of table: Table) -> Bool { row.has(values, in: table) }
}

extension JSONWriter {
    /// Writes a row as a record.
    ///
    /// - Parameter synced: ``CrudRows/synced``.
    mutating func record(_ row: FaceRow, _ table: Table, _ synced: [UInt8]) {
        object { writer in
            writer.name("id")
            row.writeID(to: &writer)
            row.writeColumns(of: table, to: &writer)
            writer.name("created_at")
            if let createdAt = row.createdAt { writer.time(createdAt, inMilliseconds: true) } else { writer.null() }
            writer.name("updated_at")
            row.writeUpdatedAt(to: &writer)
            writer.raw(synced)
        }
    }
}

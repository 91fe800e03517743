import JSON
import SyncModel

/// The fields of a change besides its values; null is the same as missing, and unknown fields are ignored.
struct ChangeFields {
    /// ``RulesVersion`` of the batch.
    private let rules: Int
    /// The owner of the row; `nil` for the caller.
    private(set) var owner: SyncID?
    private(set) var knowledgeID: KnowledgeID?
    private(set) var table: Table?
    private(set) var id: RowID?
    private(set) var isDelete = false
    private(set) var ifBase = false
    /// Unknown before rules version 4.
    private(set) var isForLiveRow = false
    /// Unknown before rules version 4.
    private(set) var ifUnchanged = false
    private(set) var base = TimeStamp.zero
    /// Microseconds since 1970.
    private(set) var updatedAt: Int64?
    /// Whether `updatedAt` was not sent in its canonical form.
    private(set) var isUpdatedAtRespelled = false
    /// Unknown before rules version 3.
    private(set) var changeID: ChangeID?

    private var seen: Names = []

    init(rules: Int) { self.rules = rules }

    enum Table {
        /// The position of a table of the schema.
        case known(Int)
        /// The schema has no table of this name, which is in quotes.
        case unknown(String)
    }

    private struct Names: OptionSet {
        let rawValue: UInt16

        static let owner = Names(rawValue: 1)
        static let knowledgeID = Names(rawValue: 2)
        static let table = Names(rawValue: 4)
        static let id = Names(rawValue: 8)
        static let deleted = Names(rawValue: 16)
        static let ifBase = Names(rawValue: 32)
        static let base = Names(rawValue: 64)
        static let updatedAt = Names(rawValue: 128)
        static let values = Names(rawValue: 256)
        static let changeID = Names(rawValue: 512)
        static let ifUnchanged = Names(rawValue: 1024)
    }

    /// Reads all fields of an object; the owner is read even where another field is refused, before or after it.
    mutating func read(_ element: borrowing JSONValue, schema: Schema, device: Device) throws(ChangeRefusal) {
        guard var members = element.members else { throw .invalidChange("a change is an object") }
        var refusal: ChangeRefusal?
        while let member = members.next() {
            do throws(ChangeRefusal) {
                try read(member, schema, device)
            } catch {
                if refusal == nil { refusal = error }
            }
        }
        if let refusal { throw refusal }
    }

    private mutating func read(
        _ member: borrowing JSONMember, _ schema: Schema, _ device: Device
    ) throws(ChangeRefusal) {
        let value = member.value
        if member.isNamed("table") {
            if try isGiven(.table, "table", value) { table = try table(value, schema) }
        } else if member.isNamed("id") {
            if try isGiven(.id, "id", value) { id = try identifier(value, "id") }
        } else if member.isNamed("values") {
            _ = try isGiven(.values, "values", value)
        } else if member.isNamed("syncId") {
            if try isGiven(.owner, "syncId", value) { owner = try self.owner(value, device) }
        } else if member.isNamed("knowledgeId") {
            if try isGiven(.knowledgeID, "knowledgeId", value) { knowledgeID = try creator(value, device) }
        } else if member.isNamed("deleted") {
            if try isGiven(.deleted, "deleted", value) { isDelete = try flag(value, "deleted") }
        } else if member.isNamed("base") {
            if try isGiven(.base, "base", value) { base = try timeStamp(value, "base") }
        } else if member.isNamed("ifBase") {
            if try isGiven(.ifBase, "ifBase", value) {
                isForLiveRow = rules >= 4 && value.string?.hasSameBytes(as: "live".utf8.span) == true
                ifBase = isForLiveRow ? true : try flag(value, "ifBase")
            }
        } else if member.isNamed("updatedAt") {
            if try isGiven(.updatedAt, "updatedAt", value) { try readUpdatedAt(value) }
        } else if rules >= 3, member.isNamed("changeId") {
            if try isGiven(.changeID, "changeId", value) { changeID = try identifier(value, "changeId") }
        } else if rules >= 4, member.isNamed("ifUnchanged") {
            if try isGiven(.ifUnchanged, "ifUnchanged", value) { ifUnchanged = try flag(value, "ifUnchanged") }
        }
    }

    /// Whether a field has a value; throws where it appears twice.
    private mutating func isGiven(
        _ field: Names, _ name: StaticString, _ value: borrowing JSONValue
    ) throws(ChangeRefusal) -> Bool {
        guard seen.insert(field).inserted else { throw .invalidChange("\(name) stands there twice") }
        return !value.isNull
    }

    private func table(_ value: borrowing JSONValue, _ schema: Schema) throws(ChangeRefusal) -> Table {
        guard let name = value.string else { throw .invalidChange("table is a string") }
        if let position = schema.table(named: name.bytes) { return .known(position) }
        return .unknown(ChangeRefusal.quoted(name))
    }

    private func identifier<ID: OpaqueID>(
        _ value: borrowing JSONValue, _ name: StaticString
    ) throws(ChangeRefusal) -> ID {
        guard let text = value.string,
            let id = ID(text.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })
        else { throw .invalidChange("\(name) is a string of 1 to 255 bytes without NUL") }
        return id
    }

    /// Most changes name the caller or no owner, and the caller's id needs no memory of its own.
    private func owner(_ value: borrowing JSONValue, _ device: Device) throws(ChangeRefusal) -> SyncID? {
        if let text = value.string, text.hasSameBytes(as: device.caller.text.utf8.span) { return nil }
        return try identifier(value, "syncId") as SyncID
    }

    private func creator(_ value: borrowing JSONValue, _ device: Device) throws(ChangeRefusal) -> KnowledgeID {
        if let text = value.string, text.hasSameBytes(as: device.knowledgeID.text.utf8.span) {
            return device.knowledgeID
        }
        let creator: KnowledgeID = try identifier(value, "knowledgeId")
        guard creator != .everyOther else { throw .invalidChange("knowledgeId: * is no device's name") }
        return creator
    }

    private func flag(_ value: borrowing JSONValue, _ name: StaticString) throws(ChangeRefusal) -> Bool {
        guard let flag = value.bool else { throw .invalidChange("\(name) is true or false") }
        return flag
    }

    private func timeStamp(_ value: borrowing JSONValue, _ name: StaticString) throws(ChangeRefusal) -> TimeStamp {
        guard let number = value.int64, let timeStamp = TimeStamp(rawValue: number) else {
            throw .invalidChange("\(name) is an integer from 0 to 2^53-1")
        }
        return timeStamp
    }

    private mutating func readUpdatedAt(_ value: borrowing JSONValue) throws(ChangeRefusal) {
        guard let text = value.string, let moment = CanonicalTimestamp(text) else {
            throw .invalidChange(
                "updatedAt is an RFC 3339 time of the years 0001 to 9999 with at most 6 decimals, as a string")
        }
        updatedAt = moment.microseconds
        isUpdatedAtRespelled = !moment.isCanonical
    }
}

import JSON
import SyncModel

/// An answer of the gateway as a device reads it.
struct Answer {
    struct Result {
        var status = ""
        var code = ""
        var timeStamp: Int64 = 0
        var version: Int64 = 0
        var knowledgeID: String?
    }

    struct Row {
        var table = ""
        var id = ""
        var owner = ""
        var knowledgeID = ""
        var timeStamp: Int64 = 0
        var version: Int64 = 0
        var isDeleted = false
        var updatedAt: String?
        var values: [String: String] = [:]
    }

    struct Entry {
        var owner = ""
        var knowledgeID = ""
        var timeStamp: Int64 = 0
    }

    var batch: Int64?
    var hasBatch = false
    var refusal: String?
    var results: [Result] = []
    var rows: [Row] = []
    var knowledge: [Entry] = []
    var owners: [String] = []
    var hasMore = false
    var revoked: [String] = []
    var resync: [String] = []
    /// Entries without a knowledgeId.
    var cutFrom: [Entry] = []

    /// Reads a body.
    init(_ body: [UInt8]) throws {
        var parser = JSONParser()
        self = try parser.withDocument(body.span) { Self($0.root) }
    }

    private init(_ root: borrowing JSONValue) {
        guard var members = root.members else { return }
        while let member = members.next() {
            let value = member.value
            if member.isNamed("batch") {
                readBatch(value)
            } else if member.isNamed("changes") {
                guard var elements = value.elements else { continue }
                while let element = elements.next() { rows.append(Self.row(element)) }
            } else if member.isNamed("knowledge") {
                guard var elements = value.elements else { continue }
                while let element = elements.next() { knowledge.append(Self.entry(element)) }
            } else if member.isNamed("owners") {
                guard var elements = value.elements else { continue }
                while let element = elements.next() { owners.append(Self.text(element.member(named: "syncId"))) }
            } else if member.isNamed("hasMore") {
                hasMore = value.bool ?? false
            } else if member.isNamed("revoked") {
                guard var elements = value.elements else { continue }
                while let element = elements.next() { revoked.append(Self.text(element)) }
            } else if member.isNamed("resync") {
                guard var elements = value.elements else { continue }
                while let element = elements.next() { resync.append(Self.text(element.member(named: "syncId"))) }
            } else if member.isNamed("cutFrom") {
                guard var elements = value.elements else { continue }
                while let element = elements.next() { cutFrom.append(Self.entry(element)) }
            }
        }
    }

    private mutating func readBatch(_ value: borrowing JSONValue) {
        hasBatch = true
        guard var members = value.members else { return }
        while let member = members.next() {
            if member.isNamed("batch") {
                batch = Self.number(member.value)
            } else if member.isNamed("refused") {
                refusal = Self.text(member.value.member(named: "code"))
            } else if member.isNamed("results") {
                guard var elements = member.value.elements else { continue }
                while let element = elements.next() { results.append(Self.result(element)) }
            }
        }
    }

    private static func result(_ value: borrowing JSONValue) -> Result {
        var result = Result()
        guard var members = value.members else { return result }
        while let member = members.next() {
            if member.isNamed("status") {
                result.status = text(member.value)
            } else if member.isNamed("code") {
                result.code = text(member.value)
            } else if member.isNamed("timeStamp") {
                result.timeStamp = number(member.value)
            } else if member.isNamed("version") {
                result.version = number(member.value)
            } else if member.isNamed("knowledgeId"), !member.value.isNull {
                result.knowledgeID = text(member.value)
            }
        }
        return result
    }

    private static func row(_ value: borrowing JSONValue) -> Row {
        var row = Row()
        guard var members = value.members else { return row }
        while let member = members.next() {
            if member.isNamed("table") {
                row.table = text(member.value)
            } else if member.isNamed("id") {
                row.id = text(member.value)
            } else if member.isNamed("syncId") {
                row.owner = text(member.value)
            } else if member.isNamed("knowledgeId") {
                row.knowledgeID = text(member.value)
            } else if member.isNamed("timeStamp") {
                row.timeStamp = number(member.value)
            } else if member.isNamed("version") {
                row.version = number(member.value)
            } else if member.isNamed("deleted") {
                row.isDeleted = member.value.bool ?? false
            } else if member.isNamed("updatedAt") {
                row.updatedAt = text(member.value)
            } else if member.isNamed("values") {
                guard var values = member.value.members else { continue }
                while let value = values.next() { row.values[text(value.name)] = source(value.value) }
            }
        }
        return row
    }

    private static func entry(_ value: borrowing JSONValue) -> Entry {
        var entry = Entry()
        guard var members = value.members else { return entry }
        while let member = members.next() {
            if member.isNamed("syncId") {
                entry.owner = text(member.value)
            } else if member.isNamed("knowledgeId") {
                entry.knowledgeID = text(member.value)
            } else if member.isNamed("lastTimeStamp") || member.isNamed("head") {
                entry.timeStamp = number(member.value)
            }
        }
        return entry
    }

    private static func text(_ value: borrowing JSONValue) -> String {
        if let string = value.string { text(string) } else { "" }
    }

    private static func text(_ value: borrowing JSONValue?) -> String {
        if let value = copy value { text(value) } else { "" }
    }

    private static func text(_ bytes: Span<UInt8>) -> String {
        bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }

    private static func number(_ value: borrowing JSONValue) -> Int64 { Int64(source(value)) ?? -1 }

    private static func source(_ value: borrowing JSONValue) -> String { text(value.sourceBytes) }
}

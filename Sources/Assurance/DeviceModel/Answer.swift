import JSON
import SyncModel

/// An answer of the gateway, parsed.
package struct Answer {
    package struct Result {
        package let status: String
        package let code: String
        package let timeStamp: Int64
        package let version: Int64
        package let knowledgeID: String?
        package let shown: Shown
    }

    /// The row in the result of a conflict or a refusal.
    package enum Shown: Equatable {
        /// The field is null.
        case none
        /// Its JSON.
        case row(String)
        /// It is that of an earlier result.
        case sameAs(Int)
        /// There is no field.
        case leftOut
    }

    package struct Row {
        package let table: String
        package let id: String
        package let owner: String
        package let knowledgeID: String
        package let timeStamp: Int64
        package let version: Int64
        package let isDeleted: Bool
        package let updatedAt: String?
        package let values: [String: String]
    }

    package struct Entry {
        package let owner: String
        package let knowledgeID: String
        package let timeStamp: Int64
    }

    package let schemaVersion: String?
    package let hasBatch: Bool
    package let refusal: String?
    package let results: [Result]
    /// The rows of a request for further rows of conflicts: the indexes of their results, and their JSON.
    package let shownRows: [(result: Int, json: String)]
    /// The first result whose row was left out.
    package let rowsFrom: Int?
    package let rows: [Row]
    package let knowledge: [Entry]
    package let hasMore: Bool
    package let revoked: [String]
    package let resync: [String]
    /// Entries without a knowledgeId.
    package let cutFrom: [Entry]

    package init(_ body: [UInt8]) throws {
        var parser = JSONParser()
        self = try parser.withDocument(body.span) { Self($0.root) }
    }

    private init(_ root: borrowing JSONValue) {
        schemaVersion = Self.text(root.member(named: "schemaVersion"))
        if let batch = root.member(named: "batch") {
            hasBatch = true
            refusal = Self.text(batch.member(named: "refused")?.member(named: "code"))
            results = Self.list(batch.member(named: "results")) { Self.result($0) }
            shownRows = Self.list(batch.member(named: "rows")) {
                (Int(Self.number($0.member(named: "result"))), Self.source($0.member(named: "row")))
            }
            rowsFrom = batch.member(named: "rowsFrom")?.int64.map { Int($0) }
        } else {
            (hasBatch, refusal, results, shownRows, rowsFrom) = (false, nil, [], [], nil)
        }
        rows = Self.list(root.member(named: "changes")) { Self.row($0) }
        knowledge = Self.list(root.member(named: "knowledge")) { Self.entry($0, "lastTimeStamp") }
        hasMore = root.member(named: "hasMore")?.bool ?? false
        revoked = Self.list(root.member(named: "revoked")) { Self.text($0) ?? "" }
        resync = Self.list(root.member(named: "resync")) { Self.text($0.member(named: "syncId")) ?? "" }
        cutFrom = Self.list(root.member(named: "cutFrom")) { Self.entry($0, "head") }
    }

    private static func list<Element>(
        _ value: borrowing JSONValue?, _ read: (borrowing JSONValue) -> Element
    ) -> [Element] {
        guard let value = copy value, var elements = value.elements else { return [] }
        var list: [Element] = []
        while let element = elements.next() { list.append(read(element)) }
        return list
    }

    private static func result(_ value: borrowing JSONValue) -> Result {
        Result(
            status: text(value.member(named: "status")) ?? "", code: text(value.member(named: "code")) ?? "",
            timeStamp: number(value.member(named: "timeStamp")), version: number(value.member(named: "version")),
            knowledgeID: text(value.member(named: "knowledgeId")), shown: shown(value))
    }

    private static func shown(_ value: borrowing JSONValue) -> Shown {
        if let row = value.member(named: "row") { return row.isNull ? .none : .row(text(row.sourceBytes)) }
        return value.member(named: "sameRowAs")?.int64.map { .sameAs(Int($0)) } ?? .leftOut
    }

    private static func row(_ value: borrowing JSONValue) -> Row {
        var values: [String: String] = [:]
        if let object = value.member(named: "values"), var members = object.members {
            while let member = members.next() { values[text(member.name)] = text(member.value.sourceBytes) }
        }
        return Row(
            table: text(value.member(named: "table")) ?? "", id: text(value.member(named: "id")) ?? "",
            owner: text(value.member(named: "syncId")) ?? "",
            knowledgeID: text(value.member(named: "knowledgeId")) ?? "",
            timeStamp: number(value.member(named: "timeStamp")), version: number(value.member(named: "version")),
            isDeleted: value.member(named: "deleted")?.bool ?? false,
            updatedAt: text(value.member(named: "updatedAt")), values: values)
    }

    private static func entry(_ value: borrowing JSONValue, _ timeStamp: StaticString) -> Entry {
        Entry(
            owner: text(value.member(named: "syncId")) ?? "",
            knowledgeID: text(value.member(named: "knowledgeId")) ?? "",
            timeStamp: number(value.member(named: timeStamp)))
    }

    private static func source(_ value: borrowing JSONValue?) -> String {
        guard let value = copy value else { return "" }
        return text(value.sourceBytes)
    }

    /// A string; `nil` for other values and where there is none.
    private static func text(_ value: borrowing JSONValue?) -> String? {
        guard let value = copy value, let string = value.string else { return nil }
        return text(string)
    }

    private static func text(_ bytes: Span<UInt8>) -> String {
        bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }

    /// An integer; -1 for other values, 0 where there is none.
    private static func number(_ value: borrowing JSONValue?) -> Int64 {
        guard let value = copy value else { return 0 }
        return Int64(text(value.sourceBytes)) ?? -1
    }
}

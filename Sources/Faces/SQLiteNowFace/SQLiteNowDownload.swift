import FanOutLink
import Gateway
import HTTP
import JSONText
import SyncModel

/// `GET /sync/download`: the rows above a position, in the order of their versions, up to a bound that is kept for all pages.
struct SQLiteNowDownload: Sendable {
    private static let maximumLimit = 1000
    /// How many pages of the stream a request reads at most: without those of its own a device can get a page without rows.
    private static let maximumReads = 4

    private let after: TimeStamp
    private let limit: Int
    private let includesSelf: Bool
    /// `nil`: up to the stream's head.
    private let until: TimeStamp?
    private let spelling: SQLiteNowSpelling

    init(_ request: FaceRequest, _ schemaName: String?) throws(Problem) {
        let positions = Int64(0)...TimeStamp.maximum.rawValue
        guard let after = try request.number("after", in: positions) else {
            throw Problem(.invalidRequest, "after is missing: 0 for everything")
        }
        guard let limit = try request.number("limit", in: 1...Int64.max) else {
            throw Problem(.invalidRequest, "limit is missing: 1 to \(Self.maximumLimit)")
        }
        self.after = TimeStamp(after)
        self.limit = Int(min(limit, Int64(Self.maximumLimit)))
        // 0 asks for none.
        until = try request.number("until", in: positions).flatMap { $0 == 0 ? nil : TimeStamp($0) }
        let (camel, snake) = (try request.query("includeSelf"), try request.query("include_self"))
        spelling = snake != nil && camel == nil ? .snake : .camel
        switch camel ?? snake {
        case nil, "false", "0": includesSelf = false
        case "true", "1": includesSelf = true
        default: throw Problem(.invalidRequest, "\(spelling.name("includeSelf", "include_self")) must be true or false")
        }
        if let schemaName {
            guard try request.query("schema")?.utf8.elementsEqual(schemaName.utf8) == true else {
                throw Problem(.invalidRequest, "schema must be \(schemaName)")
            }
        }
    }

    func respondAtOnce(_ session: any FaceSession) -> HTTPResponse? {
        guard session.isDrained(at: after) else { return nil }
        var page = SQLiteNowPage(session.schema.schema, spelling)
        return page.response(position: after, hasMore: false, window: until ?? after)
    }

    func respond(_ session: any FaceSession) async throws -> HTTPResponse {
        var page = SQLiteNowPage(session.schema.schema, spelling)
        var position = after
        // What is written from now on is for the next window.
        var window = until
        var hasMore = true
        var head: TimeStamp?
        let written = try await WrittenPosition(session).read(isFresh: true)
        for _ in 0..<Self.maximumReads where hasMore && page.count < limit {
            let rest = StreamSelection.changes(above: position, upTo: window ?? .maximum, table: nil)
            let found = try await session.rows(
                rest, limit: limit - page.count, leastHead: after, kept: written, continuing: head)
            head = found.head
            let end = min(window ?? found.head, found.head)
            window = window ?? found.head
            page.append(found.rows) { includesSelf || !$0.isKnown }
            if case .changes(let above, _, _) = found.rest, above < end {
                position = above
            } else {
                position = max(after, end)
                hasMore = false
            }
        }
        return page.response(position: position, hasMore: hasMore, window: window ?? after)
    }
}

/// The JSON of one download, while rows are added to it.
private struct SQLiteNowPage {
    private static let operations: [StaticString] = ["INSERT", "UPDATE", "DELETE"]

    private(set) var count = 0
    private let schema: Schema
    private let spelling: SQLiteNowSpelling
    /// How a change begins, by its table and operation; empty until the first one.
    private var beginnings: [[UInt8]] = []
    private var writer = JSONWriter()

    init(_ schema: Schema, _ spelling: SQLiteNowSpelling) {
        (self.schema, self.spelling) = (schema, spelling)
        writer.beginObject()
        writer.name("changes")
        writer.beginArray()
    }

    mutating func append(_ rows: [FaceRow], where isSent: (FaceRow) -> Bool) {
        // Most rows have less than half a kilobyte.
        writer.reserve(512 * rows.count)
        for row in rows where isSent(row) {
            append(row)
            count += 1
        }
    }

    private mutating func append(_ row: FaceRow) {
        writeBeginning(of: row)
        row.writeID(to: &writer)
        writer.name(spelling.name("serverVersion", "server_version"))
        row.writeTimeStamp(to: &writer)
        writer.name("payload")
        if row.isDeleted { writer.null() } else { writer.row(row, schema) }
        writer.name(spelling.name("sourceId", "source_id"))
        if mayLeaveOut(row) { row.writeWriter(to: &writer) } else { writer.value("") }
        writer.endObject()
    }

    /// Writes everything up to the primary key, which is the same for most rows.
    private mutating func writeBeginning(of row: FaceRow) {
        let operation = row.isDeleted ? 2 : row.version == 1 ? 0 : 1
        let index = row.table * Self.operations.count + operation
        while beginnings.count <= index { beginnings.append([]) }
        if beginnings[index].isEmpty {
            var text = JSONWriter()
            text.beginObject()
            text.member("op", Self.operations[operation])
            text.member(spelling.name("tableName", "table_name"), schema.tables[row.table].name.lowercased())
            text.name("pk")
            beginnings[index] = text.take()
        }
        writer.rawBeginning(beginnings[index])
    }

    /// Whether a client that leaves out the rows of its own source may leave out this one, if it is of that source.
    private func mayLeaveOut(_ row: FaceRow) -> Bool {
        switch row.writer {
        case .device: row.isKnown
        case .namesake: false
        case .other: true
        }
    }

    mutating func response(position: TimeStamp, hasMore: Bool, window: TimeStamp) -> HTTPResponse {
        writer.endArray()
        writer.name(spelling.name("nextAfter", "next_after"))
        writer.value(position.rawValue)
        writer.name(spelling.name("hasMore", "has_more"))
        writer.value(hasMore)
        writer.name(spelling.name("windowUntil", "window_until"))
        writer.value(window.rawValue)
        writer.endObject()
        return .uncached(200, writer.take())
    }
}

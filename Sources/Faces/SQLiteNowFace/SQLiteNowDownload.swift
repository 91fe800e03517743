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

    func respond(_ session: any FaceSession) async throws -> HTTPResponse {
        var rows: [FaceRow] = []
        var position = after
        // What is written from now on is for the next window.
        var window = until
        var hasMore = true
        for _ in 0..<Self.maximumReads where hasMore && rows.count < limit {
            let found = try await session.rows(
                .changes(above: position, upTo: window ?? .maximum, table: nil), limit: limit - rows.count,
                leastHead: after)
            let end = min(window ?? found.head, found.head)
            window = window ?? found.head
            rows += found.rows.filter { includesSelf || !$0.isKnown(to: session.device) }
            if case .changes(let above, _, _) = found.rest, above < end {
                position = above
            } else {
                position = max(after, end)
                hasMore = false
            }
        }
        return answer(rows, session, position: position, hasMore: hasMore, window: window ?? after)
    }

    private func answer(
        _ rows: [FaceRow], _ session: any FaceSession, position: TimeStamp, hasMore: Bool, window: TimeStamp
    ) -> HTTPResponse {
        let schema = session.schema.schema
        var writer = JSONWriter(capacity: 256 * (rows.count + 1))
        writer.object { writer in
            writer.name("changes")
            writer.array { writer in
                for row in rows {
                    let table = schema.tables[row.table]
                    writer.object { writer in
                        writer.member("op", row.isDeleted ? "DELETE" : row.version == 1 ? "INSERT" : "UPDATE")
                        writer.name(spelling.name("tableName", "table_name"))
                        writer.value(table.name.lowercased())
                        writer.member("pk", row.id.text)
                        writer.name(spelling.name("serverVersion", "server_version"))
                        writer.value(row.timeStamp.rawValue)
                        writer.name("payload")
                        if row.isDeleted { writer.null() } else { writer.row(row, of: table) }
                        writer.name(spelling.name("sourceId", "source_id"))
                        writer.value(source(of: row, for: session.device))
                    }
                }
            }
            writer.name(spelling.name("nextAfter", "next_after"))
            writer.value(position.rawValue)
            writer.name(spelling.name("hasMore", "has_more"))
            writer.value(hasMore)
            writer.name(spelling.name("windowUntil", "window_until"))
            writer.value(window.rawValue)
        }
        return .uncached(200, writer.take())
    }

    /// The device that wrote a row; none where a client that leaves out its own rows would leave out one that it does not have.
    private func source(of row: FaceRow, for device: Device) -> String {
        let isNamesake = row.writer.caller != device.caller && row.writer.knowledgeID == device.knowledgeID
        let isAltered = row.writer == device && row.isExact != true
        return isNamesake || isAltered ? "" : row.writer.knowledgeID.text
    }
}

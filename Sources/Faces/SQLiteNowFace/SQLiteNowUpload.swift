import FanOutLink
import Gateway
import HTTP
import JSON
import JSONText
import SyncModel

/// `POST /sync/upload`: changes with the versions that they edit; each gets a status.
struct SQLiteNowUpload: Sendable {
    private let session: any FaceSession
    private let schemaName: String?

    init(_ session: any FaceSession, _ schemaName: String?) {
        self.session = session
        self.schemaName = schemaName
    }

    private struct Request: Sendable {
        var spelling = SQLiteNowSpelling.camel
        /// Up to where the device has downloaded; `nil` where it does not say.
        var seen: TimeStamp?
        var changes: [Result<SQLiteNowChange, SQLiteNowRefusal>] = []
        /// Of the changes that cannot be read.
        var refused = (count: 0, bytes: 0)
    }

    func respond(to body: HTTPBody) async throws -> HTTPResponse {
        let request = try session.parse(body) { (root) throws(Problem) in try read(root) }
        var batch = FaceBatch()
        var changes: [SQLiteNowChange] = []
        for case .success(let change) in request.changes {
            changes.append(change)
            batch.add(json: change.json)
            batch.note(change.writes, of: change.table)
        }
        batch.addRefused(request.refused.count, bytes: request.refused.bytes)
        let outcome = try await session.submit(batch)
        try await recordWritten(outcome)
        let head = try await headWithoutDownloads(request.seen, outcome.head)
        var results = Self.results(outcome.results, of: changes)[...]
        var writer = JSONWriter(capacity: 128 * request.changes.count)
        writer.object { writer in
            writer.name("statuses")
            writer.array { writer in
                for change in request.changes {
                    writer.object { writer in
                        switch change {
                        case .success(let change): write(change, results.removeFirst(), request.spelling, to: &writer)
                        case .failure(let refusal):
                            writer.name(request.spelling.name("sourceChangeId", "source_change_id"))
                            writer.value(refusal.number ?? 0)
                            writer.member("status", "invalid")
                            writer.member("message", refusal.message)
                        }
                    }
                }
            }
            if let head {
                writer.name(request.spelling.name("highestServerSeq", "highest_server_seq"))
                writer.value(head.rawValue)
            }
        }
        return .uncached(200, writer.take())
    }

    // MARK: Request

    private func read(_ root: borrowing JSONValue) throws(Problem) -> Request {
        guard root.members != nil else { throw Problem(.invalidRequest, "the body must be an object") }
        guard var changes = root.member(named: "changes")?.elements else {
            throw Problem(.invalidRequest, "changes must be an array")
        }
        var request = Request()
        if root.member(named: "last_server_seq_seen") != nil { request.spelling = .snake }
        if var first = root.member(named: "changes")?.elements, let change = first.next(),
            change.member(named: "source_change_id") != nil
        {
            request.spelling = .snake
        }
        let seen =
            request.spelling == .camel
            ? root.member(named: "lastServerSeqSeen") : root.member(named: "last_server_seq_seen")
        if let seen, !seen.isNull {
            guard let number = seen.int64, let timeStamp = TimeStamp(rawValue: number) else {
                throw Problem(
                    .invalidRequest,
                    "\(request.spelling.name("lastServerSeqSeen", "last_server_seq_seen")) must be an integer from 0 to "
                        + "2^53-1")
            }
            request.seen = timeStamp
        }
        let schema = session.schema.schema
        let maximum = session.limits.outcome.maxChanges
        while let change = changes.next() {
            // Also those that cannot be read: each gets a status.
            guard request.changes.count < maximum else {
                throw Problem(.batchTooLarge, "at most \(maximum) changes are allowed at once")
            }
            do throws(SQLiteNowRefusal) {
                let read = try SQLiteNowChange(change, request.spelling, schema, schemaName: schemaName)
                request.changes.append(.success(read))
            } catch {
                // Its status could not be told from those of others.
                guard error.number != nil else { throw Problem(.invalidRequest, error.message) }
                request.changes.append(.failure(error))
                request.refused.count += 1
                request.refused.bytes += change.sourceBytes.count
            }
        }
        return request
    }

    /// Records what the device has written, at all gateways where there is an earlier version of a row, which a download could have.
    private func recordWritten(_ outcome: FaceOutcome) async throws {
        let hasEdited = outcome.results.contains { $0.status.hasEdited }
        try await WrittenPosition(session).raise(to: outcome.head, isDurable: hasEdited)
    }

    // MARK: Response

    private struct Row: Hashable {
        let table: Int
        let id: RowID
    }

    /// The statuses of the response: a change that was not stored, and that later ones of its row have made needless, counts as applied.
    ///
    /// They are what the user did last. A device that sent the earlier one again would have it stored over them, and keep what they
    /// say. They make it needless if one of them deleted the row, or if together they have all its columns.
    private static func results(
        _ results: [FaceOutcome.Result], of changes: [SQLiteNowChange]
    ) -> [FaceOutcome.Result] {
        // The most frequent case, in which none is.
        guard results.contains(where: \.status.mayPassLater) else { return results }
        var shown = results
        /// Which columns later changes have written.
        var later: [Row: [Bool]] = [:]
        for (index, change) in changes.enumerated().reversed() {
            let row = Row(table: change.table, id: change.id)
            switch results[index].status {
            case .applied, .deleted:
                let written = zip(later[row] ?? change.writes, change.writes)
                later[row] = written.map { $0 || $1 || change.isDelete }
            case .conflict, .refused:
                guard results[index].status.mayPassLater, let written = later[row] else { continue }
                let isNeedless = zip(change.writes, written).allSatisfy { !$0 || $1 }
                if isNeedless { shown[index].status = .applied(.zero, version: 0) }
            }
        }
        return shown
    }

    private func write(
        _ change: SQLiteNowChange, _ result: FaceOutcome.Result, _ spelling: SQLiteNowSpelling,
        to writer: inout JSONWriter
    ) {
        writer.name(spelling.name("sourceChangeId", "source_change_id"))
        writer.value(change.number)
        func version(_ version: Int64) {
            writer.name(spelling.name("newServerVersion", "new_server_version"))
            writer.value(version)
        }
        switch result.status {
        case .applied(let timeStamp, _):
            writer.member("status", "applied")
            // Nothing was written: a delete of a row that is not there, or a change that a later one made needless.
            version(timeStamp == .zero ? change.base : timeStamp.rawValue)
        case .deleted:
            // With the tombstone's version the app's next edit would revive the row, which nobody has told it is deleted.
            writer.member("status", "applied")
            version(change.base)
        // The row was deleted since, and a conflict has no way to say so: a client would make the row again.
        case .conflict where result.row?.isDeleted == true:
            writer.member("status", "applied")
            version(change.base)
        case .conflict:
            writer.member("status", "conflict")
            guard let row = result.row else { return }
            version(row.timeStamp.rawValue)
            writer.name(spelling.name("serverRow", "server_row"))
            writer.row(row, session.schema.schema)
        case .refused(_, let message):
            writer.member("status", result.status.mayPassLater ? "materialize_error" : "invalid")
            writer.member("message", message)
        }
    }

    /// The newest version, where the device lacks nothing up to it but its own changes.
    ///
    /// A device that takes it for its position would otherwise skip what others have written meanwhile.
    private func headWithoutDownloads(_ seen: TimeStamp?, _ least: TimeStamp) async throws -> TimeStamp? {
        guard let seen else { return nil }
        let above = StreamSelection.changes(above: seen, upTo: .maximum, table: nil)
        do {
            // One answer: a device with more to download does so anyway.
            let found = try await session.rows(above, limit: StreamQuery.maximumRows, leastHead: max(seen, least))
            let isAll = found.rest == nil && found.rows.allSatisfy { $0.isKnown }
            return isAll ? found.head : nil
        } catch {
            // The changes are stored: the device must get their statuses.
            return nil
        }
    }
}

extension FaceOutcome.Status {
    /// Whether there is a version of the row with what the change has, and one before it.
    fileprivate var hasEdited: Bool {
        switch self {
        case .applied(_, let version), .deleted(_, let version): version > 1
        case .conflict, .refused: false
        }
    }

    /// Whether a change that was not stored may be, once it is sent again.
    fileprivate var mayPassLater: Bool {
        switch self {
        case .applied, .deleted: false
        case .conflict, .refused(.quotaExceeded, _), .refused(.batchRowsTooLarge, _): true
        case .refused: false
        }
    }
}

extension FaceRow {
    /// Whether the device has the row as it is: it was the last to write it, and nothing else is stored than it sent.
    ///
    /// A row that it deleted it may have again: while a `DELETE` that was a conflict waits to be sent once more, the protocol's download
    /// applies the version that it was in conflict with, and the answer to that upload removes nothing.
    var isKnown: Bool { writer == .device && isExact == true && !isDeleted }
}

extension JSONWriter {
    /// Writes a row with its primary key and all columns.
    mutating func row(_ row: FaceRow, _ schema: Schema) {
        object { writer in
            writer.name("id")
            row.writeID(to: &writer)
            row.writeColumns(of: schema.tables[row.table], to: &writer)
        }
    }
}

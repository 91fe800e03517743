import DeviceRegistry
import FanOutLink
import Gateway
import HTTP
import JSON
import OwnerFileStore
import SyncModel
import Synchronization

/// A session over the rows of a test, which keeps what it is asked and stores nothing.
package final class ScriptedSession: FaceSession {
    package struct State {
        /// Those in this gateway's memory.
        package var positions: [String: Int64] = [:]
        /// Those that every gateway knows once it reads them again.
        package var durablePositions: [String: Int64] = [:]
        /// The caller's rows, none by default, in the order in which every selection has them.
        package var rows: [Row] = []
        /// The most rows of one answer of ``ScriptedSession/rows(_:limit:leastHead:)``.
        package var maximumRows = StreamQuery.maximumRows
        /// What reads had to have reached.
        package var leastHeads: [TimeStamp] = []
        /// What happens before the next read, while its request waits.
        package var beforeNextRead: (@Sendable () async throws -> Void)?
        /// What happens after each read.
        package var afterRead: @Sendable (inout State) -> Void = { _ in }
        /// The least that no stream has reached.
        package var end = TimeStamp.maximum
        /// This gateway's time.
        package var now: Int64 = 0
        /// Whether there are other gateways.
        package var sharesPositions = false
        package var batches: [Batch] = []
        /// The pieces of all answers that were made in pieces.
        package fileprivate(set) var pieces = 0
        /// Of the changes that count as refused by the face, in all batches.
        package fileprivate(set) var refused = (count: 0, bytes: 0)
        package var status = FaceOutcome.Status.applied(TimeStamp(1), version: 1)
        /// How many changes the rates still allow; `nil` for any number.
        package var allowedChanges: Int?
        /// The row that each result shows.
        package var shown: Row?
        /// Of the next batch.
        package var head = TimeStamp(7)
        /// Of each read that was answered, the JSON.
        fileprivate var pages: [[UInt8]] = []
        /// The most earlier pages that something held during a read.
        package fileprivate(set) var mostPagesHeld = 0
    }

    /// A row as a stream has it.
    package struct Row {
        package let table: Int
        package let id: String
        package let timeStamp: Int64
        package let isDeleted: Bool
        /// The caller's device that wrote it.
        package let writer: String
        /// Whether the columns are as the writer sent them.
        package let isExact: Bool
        /// The JSON of its columns.
        package var values: [String]

        package init(
            _ id: String, table: Int = 0, at timeStamp: Int64, isDeleted: Bool = false, by writer: String = "laptop",
            isExact: Bool = true, _ values: [String]
        ) {
            self.id = id
            self.table = table
            self.timeStamp = timeStamp
            self.isDeleted = isDeleted
            self.writer = writer
            self.isExact = isExact
            self.values = values
        }
    }

    /// A batch that was submitted.
    package struct Batch: Sendable, Hashable {
        package let isAtomic: Bool
        package let count: Int

        package init(isAtomic: Bool, count: Int) {
            self.isAtomic = isAtomic
            self.count = count
        }
    }

    package let state = Mutex(State())
    package let device = Device(caller: SyncID("abc")!, knowledgeID: KnowledgeID("phone")!)
    package let schema: SchemaHistory.Entry
    package let limits: SyncLimits
    package let epoch: String
    package var now: Int64 { state.withLock(\.now) }
    /// What a batch does to the rows, or which status it has.
    private let apply: @Sendable (Batch, inout State) -> Void

    package init(
        _ tables: [Table], epoch: String = "e1", limits: SyncLimits = SyncLimits(),
        apply: @escaping @Sendable (Batch, inout State) -> Void = { _, _ in }
    ) {
        schema = SchemaHistory.Entry(
            version: SchemaVersion(ordinal: 1, hash: "h"), schema: Schema(tables: tables))
        self.epoch = epoch
        self.limits = limits
        self.apply = apply
    }

    /// A face's response, or the problem that it throws.
    package struct Answer: Sendable {
        package var status: Int
        package var code: ProblemCode?
        /// Of a problem, its detail.
        package var text = ""
    }

    package func respond(
        of face: any Face, _ method: HTTPMethod, _ path: String, query: [(String, String)] = [], body: String = ""
    ) async throws -> Answer {
        guard let http = HTTPRequest(direct: method, path, query: query, body: Array(body.utf8)) else {
            throw Unusable(path: path)
        }
        for route in face.routes {
            guard let parameters = route.parameters(in: http.segments), route.methods.contains(method) else { continue }
            let request = FaceRequest(http: http, route: route, parameters: parameters)
            do {
                let response = try await face.respond(to: request, self)
                guard case .bytes(let text) = response.content else { throw Unusable(path: path) }
                return Answer(status: response.status, text: String(decoding: text, as: UTF8.self))
            } catch let problem as Problem {
                return Answer(status: problem.status, code: problem.code, text: problem.detail)
            }
        }
        throw Unusable(path: path)
    }

    /// No route of the face has the path, or its answer is not in one piece.
    private struct Unusable: Error {
        let path: String
    }

    package func parse<Result>(
        _ body: HTTPBody, _ read: (borrowing JSONValue) throws(Problem) -> Result
    ) throws(Problem) -> Result {
        var parser = JSONParser()
        do {
            return try parser.withDocument(body.bytes.span) { document in try read(document.root) }
        } catch let problem as Problem {
            throw problem
        } catch {
            throw Problem(.malformedJSON, "\(error)")
        }
    }

    package func submit(_ batch: FaceBatch) async throws -> FaceOutcome {
        guard batch.limitedCount <= limits.outcome.maxChanges else { throw Problem(.batchTooLarge, "too many changes") }
        let (outcome, shown) = try state.withLock { state in
            if let allowed = state.allowedChanges {
                let count = batch.count + batch.refusedCount
                guard count <= allowed else { throw Problem(.rateLimited, "too many changes") }
                state.allowedChanges = allowed - count
            }
            let submitted = Batch(isAtomic: batch.isAtomic, count: batch.count)
            if batch.count > 0 { state.batches.append(submitted) }
            state.refused.count += batch.refusedCount
            state.refused.bytes += batch.refusedBytes
            let head = state.head
            state.head = TimeStamp(head.rawValue + 1)
            apply(submitted, &state)
            let results = Array(repeating: FaceOutcome.Result(status: state.status), count: batch.count)
            return (FaceOutcome(results: results, head: head), state.shown)
        }
        guard let shown else { return outcome }
        let row = try views(of: Self.page([shown], schema.schema)).first
        let results = outcome.results.map { FaceOutcome.Result(status: $0.status, row: row) }
        return FaceOutcome(results: results, head: outcome.head)
    }

    package func rows(
        _ selection: StreamSelection, limit: Int, leastHead: TimeStamp
    ) async throws -> (rows: [FaceRow], rest: StreamSelection?, head: TimeStamp) {
        let before = state.withLock { $0.beforeNextRead.take() }
        try await before?()
        let found: StreamRows? = state.withLock { state in
            state.leastHeads.append(leastHead)
            guard leastHead < state.end else { return nil }
            state.mostPagesHeld = max(state.mostPagesHeld, state.countPagesHeld())
            let (wanted, rest) = state.select(selection, min(limit, state.maximumRows))
            var found = Self.page(wanted, schema.schema)
            let newest = state.rows.map(\.timeStamp).max() ?? 0
            (found.head, found.rest) = (max(leastHead, TimeStamp(newest)), rest)
            state.pages.append(found.json)
            state.afterRead(&state)
            return found
        }
        guard let found else { throw Problem(.positionAhead, "no stream has this") }
        return (try views(of: found), found.rest, found.head)
    }

    private func views(of found: StreamRows) throws -> [FaceRow] {
        let reader = FaceDevice(device)
        return try found.rows.map { try FaceRow($0, found.json, in: schema.schema, for: reader) }
    }

    private static func page(_ rows: [Row], _ schema: Schema) -> StreamRows {
        var page = StreamRows()
        for row in rows {
            let columns = schema.tables[row.table].columns
            let values = zip(columns, row.values).map { "\"\($0.name)\":\($1)" }.joined(separator: ",")
            let json =
                #"{"table":"\#(schema.tables[row.table].name)","id":"\#(row.id)","syncId":"abc","#
                + #""knowledgeId":"\#(row.writer)","timeStamp":\#(row.timeStamp),"version":1,"deleted":\#(row.isDeleted),"#
                + #""updatedAt":"2025-01-01T00:00:00.000000Z","writer":{"syncId":"abc","knowledgeId":"\#(row.writer)"},"#
                + #""values":{\#(values)}}"#
            page.append(
                table: row.table, timeStamp: TimeStamp(row.timeStamp), createdAt: 0, isExact: row.isExact,
                columns: columns.count, json: Array(json.utf8).span.bytes)
        }
        return page
    }

    package func stream(
        _ headers: [HTTPField], _ next: @escaping @Sendable () async throws -> FacePiece
    ) async throws -> HTTPResponse {
        var body: [UInt8] = []
        while true {
            let piece = try await next()
            state.withLock { $0.pieces += 1 }
            body += piece.bytes
            if piece.isLast { return HTTPResponse(status: 200, headers: headers, body: body) }
        }
    }

    package func isDrained(at timeStamp: TimeStamp) -> Bool { false }

    package var sharesPositions: Bool { state.withLock(\.sharesPositions) }

    package func knownPosition(_ name: String) -> Int64? { state.withLock { $0.positions[name] } }

    package func positions(isFresh: Bool) async throws -> [String: Int64] {
        state.withLock { state in
            if isFresh { state.positions.merge(state.durablePositions, uniquingKeysWith: max) }
            return state.positions
        }
    }

    package func positions(of knowledgeID: KnowledgeID) async throws -> [String: Int64] { [:] }

    package func raise(_ positions: [String: Int64], isDurable: Bool) async throws {
        state.withLock { state in
            state.positions.merge(positions, uniquingKeysWith: max)
            if isDurable { state.durablePositions.merge(positions, uniquingKeysWith: max) }
        }
    }

    package func describe(_ description: DeviceDescription) async throws {}

    package func devices(isKeeping: Bool, _ body: (RegisteredDevice) -> Void) async throws {}

    // MARK: Files, which the face does not keep

    private var keepsNoFiles: Problem { Problem(.notFound, "this server keeps no files") }

    package func file() async throws -> OwnerFile? { throw keepsNoFiles }

    package func receiveFile(of request: FaceRequest, newest: TimeStamp, digest: [UInt8]) async throws
        -> OwnerFileCommit
    {
        throw keepsNoFiles
    }

    package func send(
        _ range: Range<Int>, of file: OwnerFile, status: Int, _ headers: [HTTPField]
    ) async throws -> HTTPResponse { throw keepsNoFiles }

    package func removeFile() async throws -> Bool { throw keepsNoFiles }
}

extension ScriptedSession.State {
    /// How many pages something else holds: an array that is written to where it is, is held by nobody else.
    fileprivate mutating func countPagesHeld() -> Int {
        var count = 0
        for index in pages.indices {
            let before = pages[index].withUnsafeBufferPointer { $0.baseAddress }
            let after = pages[index].withUnsafeMutableBufferPointer { UnsafePointer($0.baseAddress) }
            if before != after { count += 1 }
        }
        return count
    }

    /// So many rows of a selection, and what is left of it.
    fileprivate func select(
        _ selection: StreamQuery.Selection, _ maximum: Int
    ) -> (rows: [ScriptedSession.Row], rest: StreamQuery.Selection?) {
        switch selection {
        case .ids(let table, let ids):
            let found = ids.prefix(maximum).compactMap { id in rows.first { $0.table == table && $0.id == id.text } }
            let rest = Array(ids.dropFirst(maximum))
            return (found, rest.isEmpty ? nil : .ids(table: table, rest))
        case .table(let table, let after):
            var all = rows.filter { $0.table == table }[...]
            if let after, let index = all.firstIndex(where: { $0.id == after.text }) { all = all[(index + 1)...] }
            let found = Array(all.prefix(maximum))
            return (found, found.count < all.count ? .table(table, after: found.last.flatMap { RowID($0.id) }) : nil)
        case .changes(let above, let upTo, let table):
            let all = rows.filter {
                (table == nil || $0.table == table) && $0.timeStamp > above.rawValue && $0.timeStamp <= upTo.rawValue
            }
            let found = Array(all.prefix(maximum))
            let rest = found.last.map {
                StreamQuery.Selection.changes(above: TimeStamp($0.timeStamp), upTo: upTo, table: table)
            }
            return (found, found.count < all.count ? rest : nil)
        }
    }
}

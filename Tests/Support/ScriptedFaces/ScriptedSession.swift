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
        package var positions: [String: Int64] = [:]
        /// The caller's rows, none by default, in the order in which every selection has them.
        package var rows: [Row] = []
        /// The most rows of one answer of ``ScriptedSession/rows(_:limit:leastHead:)``.
        package var maximumRows = StreamQuery.maximumRows
        /// What reads had to have reached.
        package var leastHeads: [TimeStamp] = []
        /// The least that no stream has reached.
        package var end = TimeStamp.maximum
        package var batches: [Batch] = []
        package var status = FaceOutcome.Status.applied(TimeStamp(1), version: 1)
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
        /// The JSON of its columns.
        package var values: [String]

        package init(_ id: String, table: Int = 0, at timeStamp: Int64, isDeleted: Bool = false, _ values: [String]) {
            self.id = id
            self.table = table
            self.timeStamp = timeStamp
            self.isDeleted = isDeleted
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
    package let now: Int64 = 0
    /// What a batch does to the rows.
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

    /// The status and code of a face's response, or of the problem that it throws.
    package func respond(
        of face: any Face, _ method: HTTPMethod, _ path: String, body: String = ""
    ) async throws -> (status: Int, code: ProblemCode?) {
        guard let http = HTTPRequest(direct: method, path, body: Array(body.utf8)) else { throw Unusable(path: path) }
        for route in face.routes {
            guard let parameters = route.parameters(in: http.segments), route.methods.contains(method) else { continue }
            let request = FaceRequest(http: http, route: route, parameters: parameters)
            do {
                return (try await face.respond(to: request, self).status, nil)
            } catch let problem as Problem {
                return (problem.status, problem.code)
            }
        }
        throw Unusable(path: path)
    }

    /// No route of the face has the path.
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
        state.withLock { state in
            let submitted = Batch(isAtomic: batch.isAtomic, count: batch.count)
            state.batches.append(submitted)
            let results = Array(repeating: FaceOutcome.Result(status: state.status), count: batch.count)
            defer { state.head = TimeStamp(state.head.rawValue + 1) }
            apply(submitted, &state)
            return FaceOutcome(results: results, head: state.head)
        }
    }

    package func rows(
        _ selection: StreamSelection, limit: Int, leastHead: TimeStamp
    ) async throws -> (rows: [FaceRow], rest: StreamSelection?, head: TimeStamp) {
        let found: StreamRows? = state.withLock { state in
            state.leastHeads.append(leastHead)
            guard leastHead < state.end else { return nil }
            state.mostPagesHeld = max(state.mostPagesHeld, state.countPagesHeld())
            let found = state.find(selection, limit: limit, leastHead, in: schema.schema)
            state.pages.append(found.json)
            return found
        }
        guard let found else { throw Problem(.positionAhead, "no stream has this") }
        let reader = FaceDevice(device)
        return (
            try found.rows.map { try FaceRow($0, found.json, in: schema.schema, for: reader) }, found.rest, found.head
        )
    }

    package func stream(
        _ headers: [HTTPField], _ next: @escaping @Sendable () async throws -> FacePiece
    ) async throws -> HTTPResponse {
        let piece = try await next()
        precondition(piece.isLast, "the rows of a test fit into one piece")
        return HTTPResponse(status: 200, headers: headers, body: piece.bytes)
    }

    package func isDrained(at timeStamp: TimeStamp) -> Bool { false }

    package func knownPosition(_ name: String) -> Int64? { state.withLock { $0.positions[name] } }

    package func positions(isFresh: Bool) async throws -> [String: Int64] { state.withLock(\.positions) }

    package func positions(of knowledgeID: KnowledgeID) async throws -> [String: Int64] { [:] }

    package func raise(_ positions: [String: Int64], isDurable: Bool) async throws {
        state.withLock { $0.positions.merge(positions, uniquingKeysWith: max) }
    }

    package func describe(_ description: DeviceDescription) async throws {}

    package func devices() async throws -> [RegisteredDevice] { [] }

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

    fileprivate func find(
        _ selection: StreamQuery.Selection, limit: Int, _ head: TimeStamp, in schema: Schema
    ) -> StreamRows {
        let maximum = min(limit, maximumRows)
        let (wanted, table, rest) = select(selection, maximum)
        var found = StreamRows(head: head, rest: rest)
        for row in wanted.prefix(maximum) {
            let columns = schema.tables[table ?? row.table].columns
            let values = zip(columns, row.values).map { "\"\($0.name)\":\($1)" }.joined(separator: ",")
            let json =
                #"{"table":"\#(schema.tables[row.table].name)","id":"\#(row.id)","syncId":"abc","#
                + #""knowledgeId":"laptop","timeStamp":\#(row.timeStamp),"version":1,"deleted":\#(row.isDeleted),"#
                + #""updatedAt":"2025-01-01T00:00:00.000000Z","writer":{"syncId":"abc","knowledgeId":"laptop"},"#
                + #""values":{\#(values)}}"#
            found.append(
                table: row.table, timeStamp: TimeStamp(row.timeStamp), createdAt: 0, isExact: true,
                columns: columns.count, json: Array(json.utf8).span.bytes)
        }
        return found
    }

    /// The rows of a selection, and what is left of it after so many.
    private func select(
        _ selection: StreamQuery.Selection, _ maximum: Int
    ) -> (rows: [ScriptedSession.Row], table: Int?, rest: StreamQuery.Selection?) {
        switch selection {
        case .ids(let table, let ids):
            let looked = ids.prefix(maximum)
            let found = looked.compactMap { id in rows.first { $0.table == table && $0.id == id.text } }
            let rest = Array(ids.dropFirst(maximum))
            return (found, table, rest.isEmpty ? nil : .ids(table: table, rest))
        case .whole(let table): return select(.table(table, after: nil), maximum)
        case .table(let table, let after):
            var found = rows.filter { $0.table == table }[...]
            if let after, let index = found.firstIndex(where: { $0.id == after.text }) { found = found[(index + 1)...] }
            let last = found.prefix(maximum).last.flatMap { RowID($0.id) }
            return (Array(found), table, found.count > maximum ? .table(table, after: last) : nil)
        case .changes(let above, let upTo, let table):
            let found = rows.filter {
                (table == nil || $0.table == table) && $0.timeStamp > above.rawValue && $0.timeStamp <= upTo.rawValue
            }
            let last = found.prefix(maximum).last.map { TimeStamp($0.timeStamp) }
            let rest = last.map { StreamQuery.Selection.changes(above: $0, upTo: upTo, table: table) }
            return (found, table, found.count > maximum ? rest : nil)
        }
    }
}

import CrudFace
import DeviceRegistry
import FanOutLink
import Gateway
import HTTP
import JSON
import OwnerFileStore
import SyncModel
import Synchronization
import Testing

/// A session over rows that are not there, which keeps what it is asked.
final class ScriptedSession: FaceSession {
    struct State {
        var positions: [String: Int64] = [:]
        /// What reads had to have reached.
        var leastHeads: [TimeStamp] = []
        /// The least that no stream has reached.
        var end = TimeStamp.maximum
        /// Of each batch, whether it is atomic.
        var batches: [Bool] = []
        var status = FaceOutcome.Status.applied(TimeStamp(1), version: 1)
        /// Of the next batch.
        var head = TimeStamp(7)
    }

    static let table = Table(
        name: "category", policy: .lastWriteWins,
        columns: [
            Column(name: "name", type: .text),
            Column(name: "parent_id", type: .text, references: "category", onDelete: .reassign),
        ])

    let state = Mutex(State())
    let device = Device(caller: SyncID("abc")!, knowledgeID: KnowledgeID("phone")!)
    let schema = SchemaHistory.Entry(
        version: SchemaVersion(ordinal: 1, hash: "h"), schema: Schema(tables: [table]))
    let limits = SyncLimits()
    let epoch: String
    let now: Int64 = 0

    init(epoch: String = "e1") { self.epoch = epoch }

    /// The response of the face, or the problem that it throws.
    func respond(_ method: HTTPMethod, id: String? = nil, body: String = "") async throws -> Int {
        let path = "/api/category" + (id.map { "/" + $0 } ?? "")
        let face = CrudFace()
        let route = face.routes[id == nil ? 0 : 1]
        let http = try #require(HTTPRequest(direct: method, path, body: Array(body.utf8)))
        let request = FaceRequest(http: http, route: route, parameters: ["category"] + (id.map { [$0] } ?? []))
        do {
            return try await face.respond(to: request, self).status
        } catch let problem as Problem {
            return problem.status
        }
    }

    func parse<Result>(
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

    func submit(_ batch: FaceBatch) async throws -> FaceOutcome {
        state.withLock { state in
            state.batches.append(batch.isAtomic)
            let results = Array(repeating: FaceOutcome.Result(status: state.status), count: batch.count)
            defer { state.head = TimeStamp(state.head.rawValue + 1) }
            return FaceOutcome(results: results, head: state.head)
        }
    }

    func rows(
        _ selection: StreamSelection, limit: Int, leastHead: TimeStamp
    ) async throws -> (rows: [FaceRow], rest: StreamSelection?, head: TimeStamp) {
        let isReached = state.withLock { state in
            state.leastHeads.append(leastHead)
            return leastHead < state.end
        }
        guard isReached else { throw Problem(.positionAhead, "no stream has this") }
        return ([], nil, leastHead)
    }

    func stream(
        _ headers: [HTTPField], _ next: @escaping @Sendable () async throws -> FacePiece
    ) async throws -> HTTPResponse {
        let piece = try await next()
        #expect(piece.isLast && piece.bytes == Array("[]".utf8))
        return HTTPResponse(status: 200, headers: headers, body: piece.bytes)
    }

    func isDrained(at timeStamp: TimeStamp) -> Bool { false }

    func knownPosition(_ name: String) -> Int64? { state.withLock { $0.positions[name] } }

    func positions(isFresh: Bool) async throws -> [String: Int64] { state.withLock(\.positions) }

    func raise(_ positions: [String: Int64], isDurable: Bool) async throws {
        state.withLock { $0.positions.merge(positions, uniquingKeysWith: max) }
    }

    func describe(_ description: DeviceDescription) async throws {}

    func devices() async throws -> [RegisteredDevice] { [] }

    // MARK: Files, which the face does not keep

    private var keepsNoFiles: Problem { Problem(.notFound, "this server keeps no files") }

    func file() async throws -> OwnerFile? { throw keepsNoFiles }

    func receiveFile(of request: FaceRequest, newest: TimeStamp, digest: [UInt8]) async throws -> OwnerFileCommit {
        throw keepsNoFiles
    }

    func send(
        _ range: Range<Int>, of file: OwnerFile, status: Int, _ headers: [HTTPField]
    ) async throws -> HTTPResponse { throw keepsNoFiles }

    func removeFile() async throws -> Bool { throw keepsNoFiles }
}

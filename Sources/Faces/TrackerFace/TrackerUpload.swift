import Gateway
import HTTP
import JSONText
import SyncModel

/// Creates, updates and deletes one document.
struct TrackerUpload: Sendable {
    private let table: FaceTable
    private let session: any FaceSession

    init(_ table: FaceTable, _ session: any FaceSession) {
        self.table = table
        self.session = session
    }

    /// `POST /tracker/{table}`: the row whose id is made of the document, made unless it exists.
    func create(_ body: HTTPBody) async throws -> HTTPResponse {
        let document = try parse(body)
        guard let createdOn = document.createdOn, let updatedOn = document.updatedOn else {
            throw Self.refusal("createdOn and updatedOn are missing: they make a repeated create the same document")
        }
        guard document.serverID == nil, !document.isDeleted else {
            throw Self.refusal("a document that has a serverId, or is deleted, is not created: PUT it")
        }
        let values = document.creation(in: table.table)
        let id = ServerID.make(
            of: table.table, createdOn: createdOn, updatedOn: updatedOn, values: values.map { $0?.canonical })
        let result = try await submit(id, values) { writer in
            writer.member("ifUnchanged", true)
            write(values, updatedOn, to: &writer)
        }
        switch result.status {
        case .applied(let timeStamp, _), .deleted(let timeStamp, _):
            return answer(201, id, timeStamp, by: session.device.knowledgeID, isDeleted: false)
        case .conflict:
            guard let row = result.row else { throw Self.isUnknown }
            // The create was stored before. Others may have edited or deleted the row since.
            let isFirst = !row.isDeleted && row.has(values, in: table.table)
            return answer(isFirst ? 201 : 200, id, row.timeStamp, by: try row.writersID, isDeleted: row.isDeleted)
        case .refused(let code, let message): throw Problem(FaceRefusal(code, message))
        }
    }

    /// `PUT /tracker/{table}/{serverId}`.
    func update(_ id: RowID, _ body: HTTPBody) async throws -> HTTPResponse {
        let document = try parse(body)
        guard document.serverID == nil || document.serverID == id else {
            throw Self.refusal("the document has another serverId than the path")
        }
        if document.isDeleted { return try await delete(id) }
        let result = try await submit(id, document.values) { writer in
            // A base makes a row that does not exist a refusal; no row is at this one.
            writer.member("base", TimeStamp.maximum.rawValue)
            write(document.values, document.updatedOn, to: &writer)
        }
        switch result.status {
        case .applied(let timeStamp, _):
            return answer(200, id, timeStamp, by: session.device.knowledgeID, isDeleted: false)
        case .deleted(let timeStamp, _):
            return answer(200, id, timeStamp, by: session.device.knowledgeID, isDeleted: true)
        case .conflict:
            guard let row = result.row else { throw Self.isUnknown }
            var problem = Problem(.conflict, "the row was updated later than this document")
            var writer = JSONWriter()
            writer.document(row, table.table)
            problem.members.append(("record", writer.take()))
            throw problem
        case .refused(.rowGone, _): throw Self.isUnknown
        case .refused(let code, let message): throw Problem(FaceRefusal(code, message))
        }
    }

    /// `DELETE /tracker/{table}/{serverId}`: without effect on a row that is deleted.
    func delete(_ id: RowID) async throws -> HTTPResponse {
        let result = try await submit(id) { $0.member("deleted", true) }
        switch result.status {
        case .applied(.zero, _), .conflict: throw Self.isUnknown
        case .applied(let timeStamp, _), .deleted(let timeStamp, _):
            return answer(200, id, timeStamp, by: session.device.knowledgeID, isDeleted: true)
        case .refused(let code, let message): throw Problem(FaceRefusal(code, message))
        }
    }

    private static func refusal(_ message: String) -> Problem { Problem(FaceRefusal(.invalidChange, message)) }

    private static var isUnknown: Problem { Problem(.notFound, "there is no row of this serverId") }

    private func parse(_ body: HTTPBody) throws(Problem) -> TrackerDocument {
        try session.parse(body) { root throws(Problem) in
            do throws(FaceRefusal) {
                return try TrackerDocument(root, of: table.table, limits: session.limits)
            } catch {
                throw Problem(error)
            }
        }
    }

    private func write(_ values: [FaceValue?], _ updatedOn: Int64?, to writer: inout JSONWriter) {
        if table.table.policy == .lastWriteWins, let updatedOn {
            writer.member("updatedAt", String(microseconds: updatedOn))
        }
        writer.values(values, of: table.table)
    }

    private func submit(
        _ id: RowID, _ values: [FaceValue?] = [], _ write: (inout JSONWriter) -> Void
    ) async throws -> FaceOutcome.Result {
        var batch = FaceBatch()
        batch.add { writer in
            writer.member("table", table.table.name)
            writer.member("id", id.text)
            write(&writer)
        }
        batch.note(values, of: table)
        let outcome = try await session.submit(batch)
        guard let result = outcome.results.first else { throw Problem(.notReady, "the outcome cannot be read") }
        try await TrackerPositions.note(shown: max(outcome.head, result.row?.timeStamp ?? .zero), session)
        return result
    }

    private func answer(
        _ status: Int, _ id: RowID, _ timeStamp: TimeStamp, by writer: KnowledgeID, isDeleted: Bool
    ) -> HTTPResponse {
        var json = JSONWriter(capacity: 256)
        json.object { json in
            json.member("serverId", id.text)
            json.member("updatedOn", timeStamp.rfc3339)
            json.member("updatedBy", writer.text)
            json.member("deleted", isDeleted)
        }
        return .uncached(status, json.take())
    }
}

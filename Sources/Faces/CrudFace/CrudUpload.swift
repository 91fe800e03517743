import Gateway
import HTTP
import JSONText
import SyncModel

/// `POST /api/{table}` and `PUT /api/{table}/{id}`: one record.
struct CrudUpload: Sendable {
    private let table: FaceTable
    private let rows: CrudRows

    init(_ table: FaceTable, _ session: any FaceSession) {
        self.table = table
        rows = CrudRows(session)
    }

    /// Makes a record, unless there is or was one of its id.
    func create(_ body: HTTPBody) async throws -> HTTPResponse {
        let record = try parse(body)
        guard let id = record.id else {
            throw Problem(FaceRefusal(.invalidChange, "id is missing: the client chooses it"))
        }
        let (status, head) = try await submit(record, id, isNew: true)
        switch status {
        case .applied, .deleted: return answer(201, try await current(id, head))
        case .conflict:
            // The record was made before, and may have been edited since.
            let row = try await current(id, head)
            guard record.isEqual(to: row, of: table.table) else {
                throw conflict(row, "there is another record of this id: nothing was stored")
            }
            return answer(200, row)
        case .refused(let code, let message): throw Problem(FaceRefusal(code, message))
        }
    }

    /// Writes a record, and makes it if there was none.
    func update(_ id: RowID, _ body: HTTPBody) async throws -> HTTPResponse {
        let record = try parse(body)
        guard record.id == nil || record.id == id else {
            throw Problem(FaceRefusal(.invalidChange, "the record has another id than the path"))
        }
        let (status, head) = try await submit(record, id, isNew: false)
        switch status {
        case .applied(_, let version): return answer(version == 1 ? 201 : 200, try await current(id, head))
        case .deleted: throw isDeleted
        case .conflict:
            throw conflict(try await current(id, head), "the record was updated later: nothing was stored")
        case .refused(let code, let message): throw Problem(FaceRefusal(code, message))
        }
    }

    private var isDeleted: Problem { Problem(.rowDeleted, "the record is deleted, and stays deleted") }

    private func parse(_ body: HTTPBody) throws(Problem) -> CrudRecord {
        let record = try rows.session.parse(body) { root throws(Problem) in
            do throws(FaceRefusal) {
                return try CrudRecord(root, of: table.table, limits: rows.session.limits)
            } catch {
                throw Problem(error)
            }
        }
        if let user = record.userID, !user.utf8.elementsEqual(rows.session.device.caller.text.utf8) {
            throw Problem(.forbidden, "user_id is another user's")
        }
        return record
    }

    private func submit(
        _ record: CrudRecord, _ id: RowID, isNew: Bool
    ) async throws -> (status: FaceOutcome.Status, head: TimeStamp) {
        var batch = FaceBatch()
        batch.add { writer in
            writer.member("table", table.table.name)
            writer.member("id", id.text)
            if isNew { writer.member("ifUnchanged", true) }
            if let updatedAt = record.updatedAt {
                writer.member("updatedAt", CrudTime.endOfMillisecond(updatedAt))
            }
            writer.values(record.values, of: table.table)
        }
        let outcome = try await rows.submit(batch)
        guard let result = outcome.results.first else { throw Problem(.notReady, "the outcome cannot be read") }
        return (result.status, outcome.head)
    }

    /// The record as it is after a write, or later.
    private func current(_ id: RowID, _ head: TimeStamp) async throws -> FaceRow {
        guard let row = try await rows.row(table.index, id, leastHead: head) else {
            throw Problem(.notReady, "the record cannot be read: send the request again")
        }
        if row.isDeleted { throw isDeleted }
        return row
    }

    private func answer(_ status: Int, _ row: FaceRow) -> HTTPResponse { .uncached(status, json(row)) }

    private func conflict(_ row: FaceRow, _ detail: String) -> Problem {
        var problem = Problem(.conflict, detail)
        problem.members.append(("record", json(row)))
        return problem
    }

    private func json(_ row: FaceRow) -> [UInt8] {
        var writer = JSONWriter(capacity: 256)
        writer.record(row, table.table, rows.synced)
        return writer.take()
    }
}

import Gateway
import HTTP
import SyncModel

/// The face of Locify's CRUD requests, under `/api`: records with `created_at`, `updated_at`, `user_id` and `sync_status`
/// (docs/faces/crud.md).
package struct CrudFace: Face {
    package init() {}

    package var prefix: String { "api" }

    package let routes = [
        FaceRoute("/api/{table}", [.get, .post]),
        FaceRoute("/api/{table}/{id}", [.get, .put, .delete]),
    ]

    package func problem(with schema: Schema) -> String? {
        for table in schema.tables {
            if table.policy != .lastWriteWins {
                return
                    "the table \(table.name) has the policy \(table.policy.rawValue), but in this protocol the latest updated_at "
                    + "wins: choose lastWriteWins, or leave the face out"
            }
            if let problem = table.problem(reserving: CrudRecord.isReserved) { return problem }
        }
        return nil
    }

    package func respond(to request: FaceRequest, _ session: any FaceSession) async throws -> HTTPResponse {
        guard let table = FaceTable(named: request.parameters[0], in: session.schema.schema) else {
            throw Problem(.notFound, "there is no table of this name")
        }
        if request.parameters.count == 1 {
            return request.method == .post
                ? try await CrudUpload(table, session).create(request.http.body)
                : try await CrudDownload(table, session).list(request)
        }
        let id = RowID(request.parameters[1])
        switch request.method {
        case .put:
            guard let id else { throw Problem(FaceRefusal(.invalidChange, "an id has 1 to 255 bytes without NUL")) }
            return try await CrudUpload(table, session).update(id, request.http.body)
        case .delete:
            return try await CrudDelete(table, session, request).respond(id)
        default:
            guard let id else { throw Problem(.notFound, "there is no record of this id") }
            return try await CrudDownload(table, session).record(id)
        }
    }
}

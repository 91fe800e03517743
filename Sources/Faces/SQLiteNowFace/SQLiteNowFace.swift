import Gateway
import HTTP
import SyncModel

/// The face of the SQLiteNow protocol, under `/sync`: uploads with a status for each change, and downloads of what follows a position
/// in the caller's order (docs/faces/sqlitenow.md).
package struct SQLiteNowFace: Face {
    /// The only schema name that is accepted; `nil`: any.
    private let schemaName: String?

    /// - Parameter schemaName: what clients must call the schema; `nil`: no name is looked at.
    package init(schemaName: String? = nil) { self.schemaName = schemaName }

    package var prefix: String { "sync" }

    package let routes = [FaceRoute("/sync/upload", [.post]), FaceRoute("/sync/download", [.get])]

    /// Rows stand in payloads of their own, so that no column can have a name of the protocol.
    package func problem(with schema: Schema) -> String? { nil }

    package func respondAtOnce(to request: FaceRequest, _ session: any FaceSession) throws(Problem) -> HTTPResponse? {
        guard request.method == .get else { return nil }
        return try SQLiteNowDownload(request, schemaName).respondAtOnce(session)
    }

    package func respond(to request: FaceRequest, _ session: any FaceSession) async throws -> HTTPResponse {
        if request.method == .get {
            return try await SQLiteNowDownload(request, schemaName).respond(session)
        }
        return try await SQLiteNowUpload(session, schemaName).respond(to: request.http.body)
    }
}

/// How a client spells the protocol's names: as in `serverVersion`, or as in `server_version`.
enum SQLiteNowSpelling: Sendable {
    case camel
    case snake

    func name(_ camel: StaticString, _ snake: StaticString) -> StaticString { self == .camel ? camel : snake }
}

extension Schema {
    /// The table of a name, which the protocol writes in lower case; no two tables differ in case alone.
    func tableIndex(ignoringCaseOf name: String) -> Int? {
        if let table = FaceTable(named: name, in: self) { return table.index }
        let name = name.lowercased()
        return tables.firstIndex { $0.name.lowercased().utf8.elementsEqual(name.utf8) }
    }
}

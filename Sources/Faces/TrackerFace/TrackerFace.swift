import Gateway
import HTTP
import SyncModel

/// The face of the device tracker, under `/tracker`: documents with `serverId`, `createdOn` and `updatedOn`, and the devices that
/// uploaded (docs/faces/tracker.md).
package struct TrackerFace: Face {
    package init() {}

    package var prefix: String { "tracker" }

    package let routes = [
        Self.tables, Self.devices, Self.device, Self.database, FaceRoute("/tracker/{table}", [.get, .post]),
        FaceRoute("/tracker/{table}/{serverId}", [.put, .delete]),
    ]

    private static let tables = FaceRoute("/tracker", [.get])
    private static let devices = FaceRoute("/tracker/devices", [.get])
    private static let device = FaceRoute("/tracker/devices/{name}", [.put])
    private static let database = FaceRoute("/tracker/database", [.get, .put, .delete], takesFile: true)

    package func problem(with schema: Schema) -> String? {
        for table in schema.tables {
            if FaceTable.isReserved(table.name) {
                return
                    "a table is called \(table.name), which is a path of the protocol: rename it, or leave the face out"
            }
            if table.policy == .checkBase {
                return
                    "the table \(table.name) has the policy checkBase, but documents of this protocol do not name the version "
                    + "that was edited: choose lastSyncWins or lastWriteWins, or leave the face out"
            }
            if let problem = table.problem(reserving: TrackerDocument.isReserved) { return problem }
        }
        return nil
    }

    package func respond(to request: FaceRequest, _ session: any FaceSession) async throws -> HTTPResponse {
        switch request.route.template {
        case Self.tables.template: return session.listOfTables()
        case Self.devices.template:
            let after = try request.timeStamp("after")
            if request.http.method == .head { return Self.headOfList }
            return try await TrackerDevices(session).list(after: after)
        case Self.device.template: return try await TrackerDevices(session).add(named: request.parameters[0])
        case Self.database.template: return try await TrackerDatabase(session).respond(to: request)
        default: break
        }
        guard let table = FaceTable(named: request.parameters[0], in: session.schema.schema) else {
            throw Problem(.notFound, "there is no table of this name")
        }
        if request.method == .get {
            let after = try request.timeStamp("after")
            if request.http.method == .head { return Self.headOfList }
            return try await TrackerDownload(table, session).respond(after: after)
        }
        let upload = TrackerUpload(table, session)
        if request.parameters.count == 1 { return try await upload.create(request.http.body) }
        guard let id = RowID(request.parameters[1]) else {
            throw Problem(.notFound, "there is no row of this serverId")
        }
        return request.method == .delete
            ? try await upload.delete(id) : try await upload.update(id, request.http.body)
    }
}

extension TrackerFace {
    /// The answer to HEAD for a list: nothing is sent that the device could have, so that no position rises and no head is frozen.
    private static var headOfList: HTTPResponse { .uncached(200, []) }
}

extension FaceTable {
    /// Whether a table's name would be a path with another meaning.
    static func isReserved(_ name: String) -> Bool { ["devices", "database"].contains(name.lowercased()) }
}

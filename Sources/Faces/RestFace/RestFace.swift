import Gateway
import HTTP
import SyncModel

/// The face of the REST Ts/Dirty algorithm, under `/rest`: rows as records with `id`, `Ts` and `Deleted` (docs/faces/rest.md).
package struct RestFace: Face {
    private let answers = RestAnswers()

    package init() {}

    package var prefix: String { "rest" }

    package let routes = [FaceRoute("/rest", [.get]), FaceRoute("/rest/{table}", [.get, .post, .put])]

    package func problem(with schema: Schema) -> String? {
        schema.tables.lazy.compactMap { $0.problem(reserving: RestRecord.isReserved) }.first
    }

    package func respondAtOnce(to request: FaceRequest, _ session: any FaceSession) throws(Problem) -> HTTPResponse? {
        guard request.http.method == .get, let name = request.parameters.first,
            let table = FaceTable(named: name, in: session.schema.schema)
        else { return nil }
        return try RestDownload(table, session, answers).respondAtOnce(to: request)
    }

    /// Of arrays that are sent in pieces.
    static let headers = [HTTPField("Content-Type", "application/json"), HTTPField("Cache-Control", "no-store")]

    package func respond(to request: FaceRequest, _ session: any FaceSession) async throws -> HTTPResponse {
        guard let name = request.parameters.first else { return session.listOfTables() }
        guard let table = FaceTable(named: name, in: session.schema.schema) else {
            throw Problem(.notFound, "there is no table of this name")
        }
        return switch request.method {
        case .post: try await RestUpload(table, session, answers, creates: true).respond(to: request.http.body)
        case .put: try await RestUpload(table, session, answers, creates: false).respond(to: request.http.body)
        default: try await RestDownload(table, session, answers).respond(to: request)
        }
    }
}

/// Positions of one history: in another one their timeStamps mean nothing.
extension FaceTable {
    /// The position below which a device has everything.
    func watermark(in epoch: String) -> String { "\(epoch) \(table.name)" }

    /// The greatest timeStamp of another device's row that a device was shown with 409: no proof that it has what is below.
    ///
    /// No table's name has a space.
    func shownWithConflicts(in epoch: String) -> String { "\(epoch) 409 \(table.name)" }

    /// The mark of the newest download of several gateways' (``RestAnswers/Download/mark``).
    func newestDownload(in epoch: String) -> String { "\(epoch) download \(table.name)" }
}

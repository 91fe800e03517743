import Digest
import FanOutLink
import Gateway
import HTTP
import JSONText
import OwnerFileStore
import SyncModel

/// `/tracker/database`: the database file of the device that had the latest data, from which a new device starts.
///
/// The server does not look into it.
struct TrackerDatabase: Sendable {
    private let session: any FaceSession

    init(_ session: any FaceSession) { self.session = session }

    func respond(to request: FaceRequest) async throws -> HTTPResponse {
        switch request.http.method {
        case .put: try await store(request)
        case .delete: try await remove()
        default: try await send(request)
        }
    }

    // MARK: Upload

    private func store(_ request: FaceRequest) async throws -> HTTPResponse {
        guard try request.query("downloadedTill") != nil else {
            throw Problem(.invalidRequest, "downloadedTill is missing: up to when the file has the rows")
        }
        let newest = try request.timeStamp("downloadedTill")
        guard let field = request.http.headers.text(of: "content-digest"), let digest = ContentDigest.parse(field)
        else { throw Problem(.invalidRequest, "Content-Digest is missing, or has no sha-256=:…: of the file") }
        // An older file is refused before it is sent.
        if let current = try await session.file(), current.newest > newest { throw isOlder(than: current) }
        try await check(newest)
        let positions = try await TrackerPositions(session)
        switch try await session.receiveFile(of: request, newest: newest, digest: digest) {
        case .stored(let file):
            try await positions.note(stored: file)
            return description(of: file)
        case .older(let current): throw isOlder(than: current)
        }
    }

    /// A time that the server has not reached would keep all later files out.
    private func check(_ newest: TimeStamp) async throws {
        do {
            _ = try await session.rows(
                .changes(above: newest, upTo: newest, table: nil), limit: 1, leastHead: newest)
        } catch let problem as Problem where problem.code == .positionAhead {
            throw Problem(
                .invalidRequest,
                "downloadedTill is above everything that the server has: take the greatest updatedOn that it gave")
        }
    }

    private func isOlder(than current: OwnerFile) -> Problem {
        var problem = Problem(.conflict, "the stored file has newer data, and stays")
        problem.headers = [HTTPField("Downloaded-Till", current.newest.rfc3339)]
        var writer = JSONWriter()
        writer.value(current.newest.rfc3339)
        problem.members.append(("downloadedTill", writer.take()))
        return problem
    }

    private func description(of file: OwnerFile) -> HTTPResponse {
        var json = JSONWriter(capacity: 128)
        json.object { json in
            json.member("downloadedTill", file.newest.rfc3339)
            json.member("bytes", file.byteCount)
        }
        var response = HTTPResponse.uncached(200, json.take())
        response.headers += [HTTPField("ETag", Self.tag(of: file)), HTTPField("Downloaded-Till", file.newest.rfc3339)]
        return response
    }

    private func remove() async throws -> HTTPResponse {
        guard try await session.removeFile() else { throw Self.isMissing }
        return HTTPResponse(status: 204)
    }

    private static var isMissing: Problem { Problem(.notFound, "no database file is stored") }

    // MARK: Download

    private func send(_ request: FaceRequest) async throws -> HTTPResponse {
        guard let file = try await session.file() else { throw Self.isMissing }
        let (headers, tag) = (request.http.headers, Self.tag(of: file))
        var fields = [
            HTTPField("ETag", tag), HTTPField("Downloaded-Till", file.newest.rfc3339),
            HTTPField("Repr-Digest", ContentDigest.field(file.digest)), HTTPField("Accept-Ranges", "bytes"),
            HTTPField("Cache-Control", "private, no-cache"),
        ]
        if let known = headers.text(of: "if-none-match"), Self.list(known, names: tag) {
            return HTTPResponse(status: 304, headers: fields)
        }
        fields.append(HTTPField("Content-Type", "application/octet-stream"))
        // The rest of another file than the one that the client has a part of would make a file that never was.
        let isSame = headers.text(of: "if-range").map { $0 == tag } ?? true
        let range = isSame ? ByteRange(headers.text(of: "range"), of: file.byteCount) : .whole
        switch range {
        case .none:
            var problem = Problem(.invalidRequest, status: 416, "the range has no byte of the file")
            problem.headers = fields.prefix(4) + [HTTPField("Content-Range", "bytes */\(file.byteCount)")]
            throw problem
        case .part(let range):
            fields.append(
                HTTPField("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(file.byteCount)"))
            return try await send(range, of: file, 206, fields, request)
        case .whole:
            fields.append(HTTPField("Content-Digest", ContentDigest.field(file.digest)))
            return try await send(0..<file.byteCount, of: file, 200, fields, request)
        }
    }

    private func send(
        _ range: Range<Int>, of file: OwnerFile, _ status: Int, _ fields: [HTTPField], _ request: FaceRequest
    ) async throws -> HTTPResponse {
        if range.isEmpty { return HTTPResponse(status: status, headers: fields) }
        if request.http.method == .head {
            return HTTPResponse(status: status, headers: fields, stream: HTTPBodyStream(length: range.count))
        }
        // A device that has the end has all.
        if range.upperBound == file.byteCount { try await TrackerPositions(session).begin(with: file) }
        return try await session.send(range, of: file, status: status, fields)
    }

    /// Strong: the same bytes have the same tag.
    private static func tag(of file: OwnerFile) -> String { "\"\(hexadecimal(file.digest))\"" }

    private static func list(_ field: String, names tag: String) -> Bool {
        field.split(separator: ",").contains { member in
            let name = member.filter { $0 != " " && $0 != "\t" }
            return name == "*" || name == tag || name == "W/" + tag
        }
    }
}

import HTTP
import JSONText
import SyncModel

/// The documents that the gateway serves without authentication.
enum Documents {
    /// `/openapi.json`: the client contract.
    static var openAPI: HTTPResponse { .json(200, PackageResources.openapi_json).withSharedBody() }

    /// `/docs/errors.md`: the document that the `type` of a problem refers to.
    static var errors: HTTPResponse {
        HTTPResponse(
            status: 200, headers: [HTTPField("Content-Type", "text/markdown; charset=utf-8")],
            body: PackageResources.errors_md, isCompressible: true
        ).withSharedBody()
    }
}

extension GatewayHandler {
    /// `GET /v1/schema`: the newest schema version and the limits; the ETag covers everything the response contains.
    func schema(_ request: HTTPRequest) throws(Problem) -> HTTPResponse {
        let newest = try newestSchema()
        let numbers = [
            limits.maxBatchBytes, limits.outcome.maxChanges, limits.outcome.maxValueBytes,
            limits.outcome.maxRowBytes, limits.outcome.maxBatchRowBytes, limits.outcome.maxOwnerRows,
            limits.outcome.maxOwnerBytes,
            Int(configuration.keepAlive.components.seconds),
        ]
        let tag = "W/\"\(newest.version.hash)-\(history.epoch)-\(numbers.map(String.init).joined(separator: "."))\""
        let headers = [HTTPField("ETag", tag), HTTPField("Cache-Control", "no-cache")]
        if request.knows(tag: tag) { return HTTPResponse(status: 304, headers: headers) }
        var response = HTTPResponse.json(200, schemaBody(newest))
        response.headers += headers
        return response
    }

    private func schemaBody(_ entry: SchemaHistory.Entry) -> [UInt8] {
        var writer = JSONWriter(capacity: 4096)
        writer.object { writer in
            writer.member("epoch", history.epoch)
            writer.member("schemaVersion", entry.version.hash)
            writer.name("tables")
            writer.array { writer in
                for (table, rank) in zip(entry.schema.tables, entry.schema.ranks) { writer.table(table, rank: rank) }
            }
            writer.name("limits")
            writer.object { writer in
                writer.member("maxBatchBytes", limits.maxBatchBytes)
                writer.member("maxChanges", limits.outcome.maxChanges)
                writer.member("maxValueBytes", limits.outcome.maxValueBytes)
                writer.member("maxRowBytes", limits.outcome.maxRowBytes)
                writer.member("maxBatchRowBytes", limits.outcome.maxBatchRowBytes)
                writer.member("maxOwnerRows", limits.outcome.maxOwnerRows)
                writer.member("maxOwnerBytes", limits.outcome.maxOwnerBytes)
                writer.member("maxLimit", Envelope.maximumLimit)
                writer.member("maxWait", Envelope.maximumWait)
                writer.member("keepAlive", configuration.keepAlive.components.seconds)
            }
        }
        return writer.take()
    }
}

extension HTTPRequest {
    /// Whether `If-None-Match` contains a tag, by weak comparison (RFC 9110, 13.1.2).
    func knows(tag: String) -> Bool {
        guard let header = headers.text(of: "if-none-match") else { return false }
        return header.utf8.split(separator: UInt8(ascii: ",")).contains { part in
            var candidate = part.drop { $0 == UInt8(ascii: " ") }
            while candidate.last == UInt8(ascii: " ") { candidate.removeLast() }
            let opaque = candidate.starts(with: "W/".utf8) ? candidate.dropFirst(2) : candidate
            return opaque.elementsEqual(tag.utf8.dropFirst(2)) || candidate.elementsEqual("*".utf8)
        }
    }
}

extension HTTPResponse {
    /// JSON that no cache may keep.
    package static func uncached(_ status: Int, _ body: [UInt8]) -> HTTPResponse {
        var response = json(status, body)
        response.headers.append(HTTPField("Cache-Control", "no-store"))
        return response
    }

    package static func json(_ status: Int, _ body: [UInt8]) -> HTTPResponse {
        HTTPResponse(
            status: status, headers: [HTTPField("Content-Type", "application/json")], body: body, isCompressible: true)
    }
}

extension JSONWriter {
    fileprivate mutating func table(_ table: Table, rank: Int) {
        object { writer in
            writer.member("name", table.name)
            writer.member("policy", table.policy.rawValue)
            writer.member("rank", rank)
            writer.name("columns")
            writer.array { writer in
                for column in table.columns { writer.column(column) }
            }
        }
    }

    private mutating func column(_ column: Column) {
        object { writer in
            writer.member("name", column.name)
            writer.member("type", column.type.name)
            writer.member("nullable", column.isNullable)
            if let value = column.defaultValue {
                writer.name("default")
                writer.raw(value)
            }
            if let length = column.maximumLength { writer.member("length", length) }
            if let table = column.references { writer.member("references", table) }
            if let rule = column.onDelete { writer.member("onDelete", rule.rawValue) }
        }
    }
}

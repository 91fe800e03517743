import Digest
import Foundation
import JSONText
import Testing

/// Uploads and downloads of database files by a client.
extension DeviceClient {
    static let databasePath = "/tracker/database"

    /// `PUT /tracker/database`.
    func putDatabase(_ file: Data, till: String, digest: String? = nil) async throws -> Answer {
        try await send(
            "PUT", "\(Self.databasePath)?downloadedTill=\(till)", file,
            [
                "Content-Type": "application/vnd.sqlite3",
                "Content-Digest": digest ?? Self.contentDigest(of: file),
            ])
    }

    static func contentDigest(of file: Data) -> String {
        var text: [UInt8] = []
        Base64.encode(SHA256.digest(of: Array(file)).span, into: &text)
        return "sha-256=:\(String(decoding: text, as: UTF8.self)):"
    }

    /// Reads some bytes of the file, and breaks the connection off.
    func beginDatabase(_ count: Int) async throws -> (tag: String, bytes: Data) {
        let request = request("GET", Self.databasePath, nil)
        let port = port
        return try await RawConnection.onThread {
            let connection = try RawConnection(port: port)
            connection.send(request)
            let start = Data(connection.peek(count + 2000))
            let end = try #require(start.range(of: Data("\r\n\r\n".utf8)))
            let head = String(decoding: start[..<end.lowerBound], as: UTF8.self)
            let tag = try #require(
                head.components(separatedBy: "\r\n").first { $0.lowercased().hasPrefix("etag: ") }?.dropFirst(6))
            connection.resetAtEnd()
            return (String(tag), Data(start[end.upperBound...].prefix(count)))
        }
    }
}

extension TrackerDevice {
    /// The last step of a sync in the document: uploads the file, for the greatest time that the server gave it.
    @discardableResult
    func uploadDatabase() async throws -> DeviceClient.Answer {
        try await client.putDatabase(try fileContent(), till: try #require(try newest))
    }

    func fileContent() throws -> Data { try Data(contentsOf: URL(filePath: path)) }
}

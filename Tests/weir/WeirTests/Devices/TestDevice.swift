import Foundation
import Testing

/// A device as the contract asks of clients: numbers its batches, keeps rows and knowledge vector, applies answers in order.
struct TestDevice: Sendable {
    var client: DeviceClient
    let knowledgeID: String
    /// The number of the last batch.
    var batch = 0
    /// The knowledge vector's entries.
    var knowledge: [JSON] = []
    /// `cutFrom` of the last answer; null where it has none.
    private var cutFrom = JSON(NSNull())
    /// The schema version that the device was built for; `nil` to follow the server's.
    var schemaVersion: String?
    /// The rows, keyed by table, owner and id.
    var rows: [String: JSON] = [:]

    init(_ weir: WeirProcess, syncID: String, knowledgeID: String, links: String? = nil) {
        self.init(port: weir.port, syncID: syncID, knowledgeID: knowledgeID, links: links)
    }

    init(port: UInt16, syncID: String, knowledgeID: String, links: String? = nil) {
        client = DeviceClient(port: port, syncID: syncID, links: links)
        self.knowledgeID = knowledgeID
    }

    /// Sends later requests to another server.
    mutating func move(to port: UInt16) { client = DeviceClient(port: port, headers: client.headers) }

    /// A change; `with` adds further fields.
    static func change(_ id: String, _ values: JSON, table: String = "person") -> JSON {
        ["table": JSON(table), "id": JSON(id), "values": values]
    }

    /// Uploads changes as the next batch and pulls; the server's answer.
    mutating func sync(_ changes: [JSON] = [], atomic: Bool = false, limit: Int? = nil) async throws -> JSON {
        var request: JSON = ["knowledgeId": JSON(knowledgeID), "knowledge": JSON(knowledge.map(\.value))]
        if !changes.isEmpty {
            batch += 1
            request = request.with("batch", JSON(batch)).with("changes", JSON(changes.map(\.value)))
        }
        if !cutFrom.isNull { request = request.with("cutFrom", cutFrom) }
        if let schemaVersion { request = request.with("schemaVersion", JSON(schemaVersion)) }
        if atomic { request = request.with("atomic", true) }
        if let limit { request = request.with("limit", JSON(limit)) }
        let answer = try await client.sync(request)
        apply(answer, changes)
        try await pullRows(of: answer["batch"], changes)
        return answer
    }

    /// Reads the rows of conflicts that the answer had no space for.
    private mutating func pullRows(of batch: JSON, _ changes: [JSON]) async throws {
        var next = batch["rowsFrom"].int
        while let from = next {
            let answer = try await client.get(
                "/v1/batches/\(self.batch)?knowledgeId=\(knowledgeID)&rowsFrom=\(from)"
            ).json()["batch"]
            for shown in answer["rows"].array {
                let index = try #require(shown["result"].int)
                applyConflict(of: changes[index], batch["results"][index], row: shown["row"])
            }
            next = answer["rowsFrom"].int
            #expect(next.map { $0 > from } ?? true)
        }
    }

    private mutating func applyConflict(of change: JSON, _ result: JSON, row: JSON) {
        let key = key(of: change)
        if result["status"].string == "conflict", !row.isNull, isNewer(row, than: rows[key]) { rows[key] = row }
    }

    private func key(of change: JSON) -> String {
        Self.key(change["table"], JSON(change["syncId"].string ?? client.headers["X-Sync-Id"] ?? ""), change["id"])
    }

    /// The statuses and codes of a batch's results, in order.
    static func verdicts(_ answer: JSON) -> [String] {
        answer["batch"]["results"].array.map { result in
            let status = result["status"].string ?? "?"
            return result["code"].string.map { "\(status) \($0)" } ?? status
        }
    }

    /// Pulls until nothing is left, and checks that no page lowers the vector.
    mutating func drain(limit: Int? = nil) async throws {
        while true {
            let before = knowledge
            let answer = try await sync(limit: limit)
            for entry in before {
                let after = answer["knowledge"].array.first {
                    $0["syncId"] == entry["syncId"] && $0["knowledgeId"] == entry["knowledgeId"]
                }
                #expect(
                    (after?["lastTimeStamp"].int ?? .max) >= (entry["lastTimeStamp"].int ?? 0),
                    "an entry of the knowledge vector went back"
                )
            }
            if answer["hasMore"].bool != true { return }
        }
    }

    /// Applies an answer: results first, then changes, then the vector.
    private mutating func apply(_ answer: JSON, _ changes: [JSON]) {
        let own = client.headers["X-Sync-Id"] ?? ""
        for (change, result) in zip(changes, answer["batch"]["results"].array) {
            let key = key(of: change)
            // The answer to a repeated batch may be older than the row that was pulled since.
            if let known = rows[key]?["timeStamp"].int, known >= result["timeStamp"].int ?? .max { continue }
            switch result["status"].string {
            case "applied", "deleted":
                var row =
                    rows[key] ?? [
                        "table": change["table"], "id": change["id"], "syncId": JSON(change["syncId"].string ?? own),
                        "values": [:],
                    ]
                var values = row["values"]
                for (name, value) in change["values"].object { values = values.with(name, value) }
                row = row.with("values", values).with("timeStamp", result["timeStamp"])
                row = row.with("version", result["version"]).with("knowledgeId", result["knowledgeId"])
                let isDeleted = change["deleted"].bool == true || result["status"].string == "deleted"
                row = row.with("deleted", JSON(isDeleted))
                row = row.with("writer", ["syncId": JSON(own), "knowledgeId": JSON(knowledgeID)])
                if result["timeStamp"].int != 0 { rows[key] = row }
            default: applyConflict(of: change, result, row: result["row"])
            }
        }
        for row in answer["changes"].array { rows[Self.key(row["table"], row["syncId"], row["id"])] = row }
        let named = Set(answer["knowledge"].array.compactMap { $0["syncId"].string })
        knowledge = knowledge.filter { !named.contains($0["syncId"].string ?? "") } + answer["knowledge"].array
        cutFrom = answer["cutFrom"]
    }

    private func isNewer(_ row: JSON, than known: JSON?) -> Bool {
        (row["timeStamp"].int ?? 0) > known?["timeStamp"].int ?? 0
    }

    private static func key(_ table: JSON, _ owner: JSON, _ id: JSON) -> String { "\(table) \(owner) \(id)" }

    /// The values of the rows that are not deleted: what an app shows, where a column without a value is NULL.
    var visible: [String: JSON] {
        rows.filter { $0.value["deleted"].bool != true }.mapValues { row in
            JSON(row["values"].object.filter { !$0.value.isNull }.mapValues(\.value))
        }
    }
}

/// A server with the tests' schema.
enum TestServer {
    static let schema = """
        tables:
          person:
            columns:
              name: text
              email: text
          note:
            policy: lastWriteWins
            columns:
              text: text
              color: { type: text, default: gray }
          seat:
            policy: checkBase
            columns:
              holder: text
              label: { type: text, nullable: false }
          amount:
            columns:
              value: decimal(6,2)
        """

    static func start(
        in folder: TestFolder? = nil, settings: [String: String] = [:], environment: [String: String] = [:],
        meanwhile: ((UInt16) async throws -> Void)? = nil
    ) async throws -> WeirProcess {
        let folder = try folder ?? TestFolder()
        let path = folder.path + "/schema.yaml"
        try schema.write(toFile: path, atomically: true, encoding: .utf8)
        return try await WeirProcess.start(
            schema: path, in: folder, settings: ["partitions": "2", "clock": "sequence(100)"].merging(settings) { $1 },
            environment: environment, meanwhile: meanwhile)
    }
}

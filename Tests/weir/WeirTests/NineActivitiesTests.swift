import Foundation
import SQLite
import Testing

/// The simulation of the netcoresync seed against a running server: the fixture's numbers, over HTTP.
@Suite struct NineActivitiesTests {
    @Test func theNineActivitiesGiveTheSeedsNumbers() async throws {
        try await Self.play(try NineActivities.standard())
    }

    @Test func theAlternateOfActivitySixGivesTheSeedsNumbersOnASecondServer() async throws {
        try await Self.play(try NineActivities.alternate())
    }

    @Test func theNineActivitiesGiveTheSeedsNumbersWithTokens() async throws {
        let folder = try TestFolder()
        try folder.write(String(repeating: "s", count: 32), to: "secret")
        let secret = ["auth.secret-file": folder.path + "/secret"]
        var tokens: [[String: String]: String] = [:]
        try await Self.play(try NineActivities.standard(), in: folder, secret.merging(["auth.method": "jwt"]) { $1 }) {
            headers in
            let token: String
            if let known = tokens[headers] {
                token = known
            } else {
                let caller = try #require(headers["X-Sync-Id"])
                let links = headers["X-Sync-Links"].map { ["--links", $0] } ?? []
                let run = try await CommandRun.run(
                    ["token", "create", caller] + links + secret.flatMap { ["--" + $0, $1] }, in: folder)
                #expect(run.code == 0, "\(run.errors)")
                token = run.output.trimmingCharacters(in: .whitespacesAndNewlines)
                tokens[headers] = token
            }
            // Nobody believes the header of a request with a token.
            return ["Authorization": "Bearer \(token)", "X-Sync-Id": "somebody else"]
        }
    }

    private static func play(
        _ activities: NineActivities, in folder: TestFolder? = nil, _ authentication: [String: String] = [:],
        identify: ([String: String]) async throws -> [String: String] = { $0 }
    ) async throws {
        let folder = try folder ?? TestFolder()
        let settings = ["partitions": "\(activities.partitions)", "clock": activities.clock]
            .merging(authentication) { $1 }
        var weir = try await WeirProcess.start(schema: activities.schema, in: folder, settings: settings)
        try await activities.play {
            weir.port
        } identify: {
            try await identify($0)
        } rows: { _ in
            // The tables are written after the answers; those of a stopped server are complete.
            #expect(await weir.stop() == 0)
            let rows = try Self.rows(in: folder)
            weir = try await WeirProcess.start(schema: activities.schema, in: folder, settings: settings)
            return rows
        }
        #expect(await weir.stop() == 0)
    }

    /// The server's rows, as its tables have them.
    private static func rows(in folder: TestFolder) throws -> [JSON] {
        let connection = try Connection(path: folder.path + "/data/tables.db", access: .readOnly)
        var rows: [JSON] = []
        do {
            var select = try connection.prepare(
                "SELECT id, sync_id, knowledge_id, name, time_stamp, deleted FROM person")
            while try select.step() {
                rows.append([
                    "id": JSON(try select.text(at: 0)), "syncId": JSON(try select.text(at: 1)),
                    "knowledgeId": JSON(try select.text(at: 2)), "name": JSON(try select.text(at: 3)),
                    "timeStamp": JSON(Int(try select.integer(at: 4))),
                    "deleted": JSON(try select.integer(at: 5) != 0),
                ])
            }
        }
        try connection.close()
        return rows.sortedByText
    }
}

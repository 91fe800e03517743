import Foundation
import SQLite
import Testing

/// The simulation of the netcoresync seed against a running server: the fixture's numbers, over HTTP.
@Suite struct NineActivitiesTests {
    private static let fixtures = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Fixtures/netcoresync")

    private static func fixture() throws -> JSON {
        JSON(
            try JSONSerialization.jsonObject(with: Data(contentsOf: fixtures.appendingPathComponent("activities.json")))
        )
    }

    @Test func theNineActivitiesGiveTheSeedsNumbers() async throws {
        let fixture = try Self.fixture()
        let activities = fixture["activities"].array
        #expect(activities.count == 9)
        try await Self.play(activities, checked: 0..., fixture)
    }

    @Test func theAlternateOfActivitySixGivesTheSeedsNumbersOnASecondServer() async throws {
        let fixture = try Self.fixture()
        let alternate = fixture["alternates"][0]
        let before = try #require(alternate["after"].int)
        let activities = Array(fixture["activities"].array.prefix(before)) + alternate["activities"].array
        try await Self.play(activities, checked: before..., fixture)
    }

    private static func play(
        _ activities: [JSON], checked: PartialRangeFrom<Int>, _ fixture: JSON
    ) async throws {
        let folder = try TestFolder()
        let server = fixture["server"]
        let schema = fixtures.appendingPathComponent(try #require(server["schema"].string)).path
        let settings = [
            "partitions": "\(try #require(server["partitions"].int))", "clock": try #require(server["clock"].string),
        ]
        var weir = try await WeirProcess.start(schema: schema, in: folder, settings: settings)
        for (number, activity) in activities.enumerated() {
            for step in activity["steps"].array {
                let headers = step["headers"].object.compactMapValues(\.string)
                let answer = try await DeviceClient(port: weir.port, headers: headers).sync(step["request"])
                guard checked.contains(number) else { continue }
                let place = Comment("activity \(activity["name"]), \(step["client"])")
                let expected = step["response"]
                for (key, value) in expected.object {
                    switch key {
                    case "changes", "knowledge":
                        #expect(answer[key].array.sortedByText == value.array.sortedByText, place)
                    default: #expect(answer[key] == value, place)
                    }
                }
                if expected["batch"].isNull { #expect(answer["batch"].isNull, place) }
            }
            guard checked.contains(number) else { continue }
            // The tables come after the answers: those of a server that has stopped are at the log's end.
            #expect(await weir.stop() == 0)
            let rows = try Self.rows(in: folder)
            #expect(rows == activity["rows"].array.sortedByText, Comment("rows after activity \(activity["name"])"))
            weir = try await WeirProcess.start(schema: schema, in: folder, settings: settings)
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

import Foundation
import Testing

/// The simulation of the netcoresync seed: what its clients send, and the numbers that a server must give.
struct NineActivities {
    let schema: String
    let partitions: Int
    let clock: String
    private let activities: [JSON]
    /// How many activities are played first, without comparing numbers.
    private let before: Int

    /// The nine activities.
    static func standard() throws -> NineActivities {
        let fixture = try fixture()
        let activities = fixture["activities"].array
        #expect(activities.count == 9)
        return try NineActivities(fixture, activities, before: 0)
    }

    /// The alternative of activity six, for a second server.
    static func alternate() throws -> NineActivities {
        let fixture = try fixture()
        let alternate = fixture["alternates"][0]
        let before = try #require(alternate["after"].int)
        let activities = Array(fixture["activities"].array.prefix(before)) + alternate["activities"].array
        return try NineActivities(fixture, activities, before: before)
    }

    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Support/Fixtures/netcoresync")

    private static func fixture() throws -> JSON {
        JSON(try JSONSerialization.jsonObject(with: Data(contentsOf: folder.appendingPathComponent("activities.json"))))
    }

    private init(_ fixture: JSON, _ activities: [JSON], before: Int) throws {
        let server = fixture["server"]
        schema = Self.folder.appendingPathComponent(try #require(server["schema"].string)).path
        partitions = try #require(server["partitions"].int)
        clock = try #require(server["clock"].string)
        self.activities = activities
        self.before = before
    }

    /// Plays them, and compares answers and rows.
    ///
    /// - Parameters:
    ///   - port: the server's current port.
    ///   - identify: the headers by which the server knows a caller, from those of the fixture.
    ///   - rows: the server's rows after an activity, once they have reached a timeStamp.
    func play(
        port: () -> UInt16, identify: ([String: String]) async throws -> [String: String] = { $0 },
        rows: (Int) async throws -> [JSON]
    ) async throws {
        for (number, activity) in activities.enumerated() {
            for step in activity["steps"].array {
                let headers = try await identify(step["headers"].object.compactMapValues(\.string))
                let answer = try await DeviceClient(port: port(), headers: headers).sync(step["request"])
                guard number >= before else { continue }
                let comment = Comment("activity \(activity["name"]), \(step["client"])")
                let expected = step["response"]
                for (key, value) in expected.object {
                    switch key {
                    case "changes", "knowledge":
                        #expect(answer[key].array.sortedByText == value.array.sortedByText, comment)
                    default: #expect(answer[key] == value, comment)
                    }
                }
                if expected["batch"].isNull { #expect(answer["batch"].isNull, comment) }
            }
            guard number >= before else { continue }
            let expected = activity["rows"].array.sortedByText
            let newest = expected.compactMap { $0["timeStamp"].int }.max() ?? 0
            let found = try await rows(newest)
            #expect(found == expected, Comment("rows after activity \(activity["name"])"))
        }
    }
}

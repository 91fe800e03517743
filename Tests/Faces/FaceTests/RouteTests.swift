import Foundation
import Gateway
import HTTP
import ScriptedFaces
import SyncModel
import Synchronization
import Testing
import TrackerFace

/// `/openapi.json` describes the routes of all faces.
@Suite struct RouteTests {
    /// Of paths, those of faces by their tag: the method and the path.
    private let described: Set<String>
    /// The same with each status that the document describes.
    private let statuses: Set<String>

    init() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let document = try JSONSerialization.jsonObject(
            with: Data(contentsOf: root.appending(path: "docs/openapi.json")))
        let paths = try #require((document as? [String: Any])?["paths"] as? [String: [String: [String: Any]]])
        let operations = paths.flatMap { path, operations in
            operations.filter { $0.value["tags"] as? [String] == ["faces"] }.map { "\($0.key) \(path)" }
        }
        described = Set(operations)
        let answers = paths.flatMap { path, operations in
            operations.flatMap { method, operation in
                (operation["responses"] as? [String: Any] ?? [:]).keys.map { "\(method) \(path) \($0)" }
            }
        }
        statuses = Set(answers)
    }

    private func routes(of face: any Face) -> Set<String> {
        Set(
            face.routes.flatMap { route in
                route.methods.filter { $0 != .head }.map { "\($0.description.lowercased()) \(route.template)" }
            })
    }

    @Test(arguments: TestedFace.all) func theDocumentDescribesEveryRoute(tested: TestedFace) {
        let ofPrefix = described.filter { $0.split(separator: "/").dropFirst().first == tested.face.prefix[...] }
        #expect(ofPrefix == routes(of: tested.face))
    }

    /// Else a face is missing in this test, or a route in the server.
    @Test func theDocumentDescribesNoRouteOfAnotherFace() {
        let all = TestedFace.all.reduce(into: Set<String>()) { $0.formUnion(routes(of: $1.face)) }
        #expect(described == all)
    }

    /// Of a query, too, whether or not the route has one.
    @Test func theDocumentSaysThatATargetMayBeTooLong() {
        #expect(described.filter { !statuses.contains("\($0) 414") } == [])
    }

    /// A log that was restored may have less than the server has noted that a device was shown.
    @Test(arguments: ["/tracker/devices", "/tracker/note"])
    func aDeviceThatWasShownMoreThanTheLogHasIsToldSo(path: String) async throws {
        let session = ScriptedSession([Table(name: "note", columns: [Column(name: "title", type: .text)])])
        // The time of an upload's answer.
        let sent = #"{"title":"A","createdOn":"2026-05-01T08:00:00Z","updatedOn":"2026-05-01T08:00:00Z"}"#
        #expect(try await session.respond(of: TrackerFace(), .post, "/tracker/note", body: sent).status == 201)
        #expect(try await session.respond(of: TrackerFace(), .get, path).status == 200)
        session.state.withLock { $0.end = TimeStamp(7) }
        let answer = try await session.respond(of: TrackerFace(), .get, path)
        #expect(answer.status == 410 && answer.code == .positionAhead)
        #expect(statuses.contains("get \(path.replacing("note", with: "{table}")) 410"))
    }

    @Test func facesHavePathsOfTheirOwn() {
        let prefixes = TestedFace.all.map(\.face.prefix)
        #expect(Set(prefixes).count == prefixes.count)
        for tested in TestedFace.all {
            for route in tested.face.routes {
                #expect(route.template.split(separator: "/").first == tested.face.prefix[...], "\(route.template)")
            }
        }
    }
}

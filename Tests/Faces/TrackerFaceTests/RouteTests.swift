import Foundation
import Gateway
import HTTP
import SyncModel
import Testing
import TrackerFace

@Suite struct RouteTests {
    /// `/openapi.json` describes each route of the face, and no other under its prefix.
    @Test func theDocumentDescribesEveryRoute() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let document = try JSONSerialization.jsonObject(
            with: Data(contentsOf: root.appending(path: "docs/openapi.json")))
        let paths = try #require((document as? [String: Any])?["paths"] as? [String: [String: Any]])
        let described = paths.filter { $0.key.split(separator: "/").first == "tracker" }.flatMap { path, operations in
            operations.keys.map { "\($0) \(path)" }
        }
        let routes = TrackerFace().routes.flatMap { route in
            route.methods.filter { $0 != .head }.map { "\($0.description.lowercased()) \(route.template)" }
        }
        #expect(Set(described) == Set(routes))
    }

    private func problem(_ table: Table) -> String? { TrackerFace().problem(with: Schema(tables: [table])) }

    @Test(arguments: ["serverId", "SERVERID", "createdon", "updatedOn", "updatedBy", "Deleted"])
    func aColumnMayNotHaveANameOfTheProtocol(name: String) {
        #expect(problem(Table(name: "note", columns: [Column(name: name, type: .text)]))?.contains(name) == true)
        #expect(problem(Table(name: "note", columns: [Column(name: name + "_", type: .text)])) == nil)
    }

    @Test(arguments: ["devices", "Database"]) func aTableMayNotHaveAPathOfTheProtocol(name: String) {
        #expect(problem(Table(name: name, columns: []))?.contains(name) == true)
    }

    @Test func checkBaseIsRefused() {
        #expect(problem(Table(name: "note", policy: .checkBase, columns: []))?.contains("note") == true)
        #expect(problem(Table(name: "note", policy: .lastWriteWins, columns: [])) == nil)
    }
}

import Foundation
import Gateway
import HTTP
import RestFace
import SyncModel
import Testing

@Suite struct RouteTests {
    /// `/openapi.json` describes each route of the face, and no other under its prefix.
    @Test func theDocumentDescribesEveryRoute() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let document = try JSONSerialization.jsonObject(
            with: Data(contentsOf: root.appending(path: "docs/openapi.json")))
        let paths = try #require((document as? [String: Any])?["paths"] as? [String: [String: Any]])
        let described = paths.filter { $0.key.split(separator: "/").first == "rest" }.flatMap { path, operations in
            operations.keys.map { "\($0) \(path)" }
        }
        let routes = RestFace().routes.flatMap { route in
            route.methods.filter { $0 != .head }.map { "\($0.description.lowercased()) \(route.template)" }
        }
        #expect(Set(described) == Set(routes))
    }

    @Test(arguments: ["id", "ID", "Ts", "TS", "deleted"])
    func aColumnMayNotHaveANameOfTheProtocol(name: String) {
        let schema = Schema(tables: [Table(name: "person", columns: [Column(name: name, type: .text)])])
        #expect(RestFace().problem(with: schema)?.contains(name) == true)
        let other = Schema(tables: [Table(name: "person", columns: [Column(name: name + "_", type: .text)])])
        #expect(RestFace().problem(with: other) == nil)
    }
}

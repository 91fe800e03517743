import Foundation
import Gateway
import HTTP
import Testing

/// `/openapi.json` describes the routes of all faces.
@Suite struct RouteTests {
    /// Of paths, those of faces by their tag: the method and the path.
    private let described: Set<String>

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

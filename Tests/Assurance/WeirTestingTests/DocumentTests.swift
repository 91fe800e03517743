import Foundation
import Testing

/// docs/client-testing.md shows an example that is compiled here.
@Suite struct DocumentTests {
    @Test func theDocumentShowsTheExampleThatIsTested() throws {
        let here = URL(filePath: #filePath)
        let example = try String(
            contentsOf: here.deletingLastPathComponent().appending(path: "DocumentedExample.swift"), encoding: .utf8)
        let root = (0..<4).reduce(here) { url, _ in url.deletingLastPathComponent() }
        let document = try String(contentsOf: root.appending(path: "docs/client-testing.md"), encoding: .utf8)
        #expect(document.contains("```swift\n\(example)```\n"), "copy DocumentedExample.swift into the document")
    }
}

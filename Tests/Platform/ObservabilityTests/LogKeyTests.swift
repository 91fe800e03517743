import Foundation
import Testing

/// The table of log keys in docs/operations.md.
@Suite struct LogKeyTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8)
    }

    @Test func everyKeyIsDocumentedAsDeclared() throws {
        let source = try text("Sources/Platform/Observability/LogKey.swift")
        let declared = source.matches(of: /\/\/\/ (.+)\n    package static let [a-zA-Z]+ = LogKey\("([a-z_]+)"\)/)
            .map { "| `\($0.2)` | \($0.1) |" }
        #expect(declared.count == source.components(separatedBy: "= LogKey(\"").count - 1)
        let page = try text("docs/operations.md")
        let table = try #require(page.components(separatedBy: "| key | meaning |\n|---|---|\n").dropFirst().first)
        let documented = table.split(separator: "\n", omittingEmptySubsequences: false).prefix { $0.hasPrefix("|") }
        #expect(documented.map(String.init) == declared)
    }
}

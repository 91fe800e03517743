import Foundation
import Metrics
import Testing

/// The table of metrics in docs/operations.md.
@Suite struct DocumentTests {
    private static let document = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent(
            "docs/operations.md")

    @Test func everyMetricIsDocumentedAsDeclared() throws {
        let page = try String(contentsOf: Self.document, encoding: .utf8)
        let header = "| metric | kind | labels | meaning |\n|---|---|---|---|\n"
        let table = try #require(page.components(separatedBy: header).dropFirst().first)
        let documented = table.split(separator: "\n", omittingEmptySubsequences: false).prefix { $0.hasPrefix("|") }
            .map(String.init)
        let declared = Metric.all.map { metric in
            let labels = metric.labels.map { "`\($0.rawValue)`" }.joined(separator: ", ")
            return "| `\(metric.name)` | \(metric.kind.name) | \(labels) | \(metric.help) |"
        }
        let missing = declared.filter { !documented.contains($0) }
        #expect(missing.isEmpty, "missing or different:\n\(missing.joined(separator: "\n"))")
        #expect(documented == declared)
    }

    @Test func theDocumentNamesNoUnknownMetric() throws {
        // Tables begin like metrics, behind the name of their schema.
        let page = try String(contentsOf: Self.document, encoding: .utf8).replacing("weir.weir_", with: "")
        let names = Set(Metric.all.map(\.name))
        let named = page.matches(of: /weir_[a-z_]+/).map { String($0.0) }
        #expect(named.count > Metric.all.count)
        // A name that goes on is not a metric's.
        for name in named where !name.hasSuffix("_") {
            let plain = name.replacing(/_(bucket|count|sum)$/, with: "")
            #expect(names.contains(name) || names.contains(plain), "\(name)")
        }
    }
}

import Fuzzing
import Testing
import YAML

/// Whatever a file holds: it is refused with line and column, or can be read.
@Suite struct YAMLFuzzTests {
    private static let corpus: [[UInt8]] = [
        "tables:\n  person:\n    policy: lastSyncWins\n    columns:\n      name: { type: text, length: 200 }\n",
        "# a comment\ngateway:\n  address: \"127.0.0.1:7777\"\n  threads: 8\nlog.level: 'info'\n",
        "a: |\n  block\n  text\nb: >-\n  folded\n  text\nc: [1, 2.5, null, ~, true, \"x\\u00e9\\n\", {d: e}]\n",
        "---\n- one\n-   - two\n    - three\n-\n...\n", "plain text", "? a\n: b\n", "a:\n- b\n- c: d\n  e: f\n", "",
    ].map { Array($0.utf8) }

    private static let words = [
        ":", ": ", "- ", "\n", "\n  ", "{", "}", "[", "]", ",", "#", "&a", "*a", "!!str", "|", ">", "---", "...", "\"",
        "'", "\\x00", "\\uD800", "\t", "%YAML 1.2", "? ", "<<: *a", "\u{FEFF}", "\u{85}", "[[[[[[", "{{{{", "é",
    ]

    @Test func refusesWithAPositionOrReadsAnyInput() throws {
        let tally = try Fuzzer(
            "YAML", count: TestLength.count(5000, long: 150_000), corpus: Self.corpus, words: Self.words
        ).run { bytes in
            let lines = 1 + bytes.reduce(0) { $0 + ($1 == UInt8(ascii: "\n") || $1 == UInt8(ascii: "\r") ? 1 : 0) }
            do {
                let document = try YAMLDocument(bytes)
                if let root = document.root { try Self.walk(root) }
                return .accepted
            } catch let error as YAMLError {
                // NEL and the separators of Unicode end lines, too: three bytes at most for each.
                guard error.position.line >= 1, error.position.column >= 1, !error.message.isEmpty,
                    error.position.line <= lines + bytes.count / 2 + 1
                else { throw Fuzzer.BrokenPromise("\(error) in \(lines) lines") }
                return .refused
            }
        }
        #expect(tally.accepted > 500 && tally.refused > 500, "\(tally)")
    }

    private static func walk(_ node: YAMLNode, depth: Int = 1) throws {
        guard depth <= YAMLLimits().depth else { throw Fuzzer.BrokenPromise("deeper than the limit") }
        for element in node.sequence ?? [] { try walk(element, depth: depth + 1) }
        guard let entries = node.mapping?.entries else { return }
        guard Set(entries.map(\.key.text)).count == entries.count else { throw Fuzzer.BrokenPromise("a repeated key") }
        for entry in entries { try walk(entry.value, depth: depth + 1) }
    }
}

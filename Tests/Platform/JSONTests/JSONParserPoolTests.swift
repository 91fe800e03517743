import JSON
import Testing

struct JSONParserPoolTests {
    /// Documents of many tasks at once are not mixed, small and large ones.
    @Test func eachCallerHasAParserOfItsOwn() async throws {
        let parsers = JSONParserPool()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<32 {
                group.addTask {
                    for round in 0..<20 {
                        let count = (task + round).isMultiple(of: 4) ? 300_000 : 10
                        let text = "[\(task),\"\(String(repeating: "x", count: count))\",\(round)]"
                        let bytes = Array(text.utf8)
                        let found = try parsers.withParser(for: bytes.count) { parser in
                            try parser.withDocument(bytes.span) { document in
                                // One more in use while this one's document is read.
                                let inner = try parsers.withParser(for: 3) { parser in
                                    try parser.withDocument(Array("[7]".utf8).span) { $0.root.count }
                                }
                                var elements = document.root.elements
                                let first = elements?.next()?.int64
                                _ = elements?.next()
                                return (first, elements?.next()?.int64, inner)
                            }
                        }
                        #expect(found.0 == Int64(task) && found.1 == Int64(round) && found.2 == 1)
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}

import IndexDamage
import Testing

/// The indexes of the streams' rows, which streams have where faces are served.
extension VerifyTests {
    private static let faces = ["faces": "rest"]
    private static let indexes = ["stream_by_id", "stream_by_table"]

    private func fillWithFaces() async throws {
        let weir = try await TestServer.start(in: folder, settings: Self.faces)
        _ = try await play(weir, seed: 4, rounds: 4)
        #expect(await weir.stop() == 0)
    }

    private func busiestStream() async throws -> String {
        "fanout-\(try await busiest { ("SELECT count(*) FROM stream", "fanout-\($0).db") }).db"
    }

    private func streamLine(_ run: CommandRun) throws -> Substring {
        #expect(run.code == 1)
        return try #require(run.output.split(separator: "\n").first { $0.contains("DIFFERENT") })
    }

    /// The rows are whole, and faces would not find one of them.
    @Test(arguments: indexes) func aStreamIndexThatLacksARowIsReportedUntilTheNextStart(index: String) async throws {
        try await fillWithFaces()
        let stream = try await busiestStream()
        let missing = try await integer("SELECT max(time_stamp) FROM stream", on: stream)
        try IndexDamage.keepEntries(where: "time_stamp <> \(missing)", of: index, in: "\(data)/\(stream)")
        let line = try streamLine(try await verify())
        #expect(line.hasPrefix("  stream    DIFFERENT: the file: expected whole, found "), "\(line)")
        #expect(line.contains("missing from index \(index)"), "\(line)")
        let next = try await TestServer.start(in: folder, settings: Self.faces)
        #expect(await next.stop() == 0)
        let mended = try await verify()
        #expect(mended.code == 0, "\(mended.output)")
    }

    @Test func streamsWithIndexesAndWithoutAreEqual() async throws {
        try await fillWithFaces()
        let stream = try await busiestStream()
        let count = "SELECT count(*) FROM sqlite_schema WHERE name IN ('stream_by_id', 'stream_by_table')"
        #expect(try await integer(count, on: stream) == 2)
        let with = try await verify()
        #expect(with.code == 0, "\(with.output)")
        let weir = try await TestServer.start(in: folder)
        #expect(await weir.stop() == 0)
        #expect(try await integer(count, on: stream) == 0)
        let without = try await verify()
        #expect(without.code == 0, "\(without.output)")
    }
}

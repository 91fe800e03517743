import Foundation
import Ingest
import JSON
import SyncModel
import Testing

struct ParserMemoryTests {
    private final class Partition {
        var admission: Admission

        init(_ parsers: JSONParserPool) {
            admission = Admission(history: Fixture.history(recordSize: 8 << 20), parsers: parsers)
        }
    }

    /// A parser takes up to 20 times its document, which would be kept for each of 64 partitions.
    @Test func partitionsShareTheMemoryOfLargeBatches() throws {
        let upload = Upload(Array(repeating: "0", count: 1 << 20))
        let parsers = JSONParserPool()
        let before = try residentBytes()
        let partitions = try (0..<64).map { _ in
            let partition = Partition(parsers)
            let admitted = try partition.admission.admit(
                upload.record, of: upload.partition, schemas: Fixture.schemas)
            #expect(admitted.recordRefusal?.code == .tooManyChanges)
            return partition
        }
        let grown = try residentBytes() - before
        #expect(grown < 512 << 20, "\(grown >> 20) MB more with \(partitions.count) partitions")
    }

    private func residentBytes() throws -> Int {
        let pages = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
        return try #require(Int(pages[1])) * Int(sysconf(Int32(_SC_PAGESIZE)))
    }
}

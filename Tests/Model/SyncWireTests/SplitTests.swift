import Seeded
import SyncModel
import SyncWire
import Testing

@Suite struct SplitTests {
    private static let schema = Schema(
        tables: (0..<5).map { Table(name: "table\($0)" + String(repeating: "x", count: $0 * 10), columns: []) })

    @Test func aResultThatFitsIsOnePiece() {
        let result = Self.result(rows: 10)
        #expect(result.split(at: 1 << 20, naming: Self.schema) == [result])
    }

    @Test(arguments: [1, 700, 1000, 2000, 5000, 20_000])
    func piecesAreWithinTheSizeAndJoinToTheResult(size: Int) {
        let result = Self.result(rows: 100)
        let pieces = result.split(at: size, naming: Self.schema)
        #expect(pieces.count > 1)
        #expect(pieces.map(\.piece) == Array(pieces.indices))
        #expect(pieces.map(\.isLast) == pieces.map { $0.piece == pieces.count - 1 })
        for piece in pieces {
            let count = piece.rows.count + piece.results.count + (piece.summary?.refusals.count ?? 0)
            #expect(count > 0)
            #expect(piece.encode(naming: Self.schema).count <= size || count == 1)
            #expect(piece.summary?.changeCount == result.summary?.changeCount)
            #expect(piece.summary?.otherOwners == result.summary?.otherOwners)
            var header = piece
            header.rows = result.rows
            header.results = result.results
            header.summary = result.summary
            header.piece = 0
            header.isLast = true
            #expect(header == result)
        }
        #expect(pieces.flatMap(\.rows) == result.rows)
        #expect(pieces.flatMap(\.results) == result.results)
        #expect(pieces.flatMap { $0.summary?.refusals ?? [] } == result.summary?.refusals)
    }

    @Test func rowsPrecedeRefusalsAndResults() {
        let pieces = Self.result(rows: 100).split(at: 1000, naming: Self.schema)
        let kinds = pieces.flatMap {
            $0.rows.map { _ in 0 } + ($0.summary?.refusals ?? []).map { _ in 1 } + $0.results.map { _ in 2 }
        }
        #expect(kinds == kinds.sorted())
        #expect(Set(kinds) == [0, 1, 2])
    }

    @Test func piecesAreWellFilled() {
        let result = Self.result(rows: 1000)
        let size = 20_000
        let pieces = result.split(at: size, naming: Self.schema)
        // An item has at most 500 bytes.
        for piece in pieces.dropLast() { #expect(piece.encode(naming: Self.schema).count > size - 500) }
    }

    @Test func aRowLargerThanAPieceIsAPieceOfItsOwn() {
        var result = Self.result(rows: 3)
        result.results = []
        result.summary = nil
        result.rows[1].row.values = Sample.values("\"" + String(repeating: "x", count: 5000) + "\"")
        let pieces = result.split(at: 2000, naming: Self.schema)
        #expect(pieces.map(\.rows) == result.rows.map { [$0] })
    }

    @Test func theSameResultIsSplitAtTheSamePoints() {
        let first = Self.result(rows: 300).split(at: 3000, naming: Self.schema)
        let again = Self.result(rows: 300).split(at: 3000, naming: Self.schema)
        #expect(first.map { $0.encode(naming: Self.schema) } == again.map { $0.encode(naming: Self.schema) })
        // A later schema version may have more tables: the split points stay the same.
        let later = Schema(tables: Self.schema.tables + [Table(name: "later", columns: [])])
        #expect(Self.result(rows: 300).split(at: 3000, naming: later) == first)
    }

    @Test func aResultWithoutRowsIsOnePiece() {
        var result = Self.result(rows: 0)
        result.verdict = .repeated
        result.results = []
        result.summary = nil
        #expect(result.split(at: 1, naming: Self.schema) == [result])
    }

    private static func result(rows count: Int) -> OrderedPiece {
        var random = SeededRandom(seed: 7)
        let device = Sample.device
        let rows = (0..<count).map { index in
            OrderedRow(
                key: RowKey(table: index % 5, owner: device.caller, id: RowID(unchecked: "row\(index)")),
                knowledgeID: index % 3 == 0 ? Sample.other : device.knowledgeID, timeStamp: TimeStamp(Int64(index + 1)),
                version: 2, isDeleted: false, createdAt: 1, updatedAt: 0, writer: device, writerBatch: 3,
                isExact: true, othersTimeStamp: .zero,
                values: Sample.values(String(repeating: "7", count: Int.random(in: 1...300, using: &random))))
        }
        let results = rows.enumerated().map { index, row in
            ChangeResult(
                index: index, table: row.key.table, id: row.key.id,
                status: .applied(timeStamp: row.timeStamp, version: 1, knowledgeID: row.knowledgeID), heldFrom: .zero)
        }
        let refusals = (0..<count / 4).map {
            Refusal(index: count + $0, code: .invalidValue, message: String(repeating: "m", count: $0 * 7 % 200))
        }
        return OrderedPiece(
            epoch: Sample.epoch, changesOffset: 5, schema: Sample.hash,
            upload: UploadReference(partition: 0, offset: 9), uploadPart: 0, logTime: 1,
            timeStamp: TimeStamp(1_000_000),
            owner: device.caller, device: device, batch: 3, verdict: .ordered, contentHash: Sample.contentHash,
            touchedBytes: 1_000_000,
            rows: rows.map { WrittenRow($0, before: TimeStamp($0.timeStamp.rawValue / 2)) }, results: results,
            summary: BatchSummary(
                changeCount: count + refusals.count, otherOwners: [SyncID(unchecked: "x")], refusals: refusals))
    }
}

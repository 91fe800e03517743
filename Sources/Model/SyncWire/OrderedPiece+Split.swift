import SyncModel

extension OrderedPiece {
    /// Splits a whole result into pieces of at most `size` encoded bytes where possible; a larger row or result is a
    /// piece of its own.
    ///
    /// Rows come first, then refusals, then results, each in their order; the rest of the summary is in every piece.
    /// The same result is split at the same points on every machine, since `size` is fixed in `control`: a repeated
    /// result must have the same pieces (I2, I5).
    ///
    /// - Parameters:
    ///   - size: ``History/pieceSize``.
    ///   - schema: the result's schema version, as for ``encode(naming:)``.
    package func split(at size: Int, naming schema: Schema) -> [OrderedPiece] {
        var cutter = PieceCutter(self, size: size, schema: schema)
        for row in rows {
            cutter.begin(WireWriter.size { write(row, to: &$0) }, table: row.row.key.table)
            cutter.piece.rows.append(row)
        }
        for refusal in summary?.refusals ?? [] {
            cutter.begin(
                WireWriter.size { $0.message(BatchSummary.refusalField) { refusal.write(to: &$0) } }, table: nil)
            cutter.piece.summary?.refusals.append(refusal)
        }
        for result in results {
            cutter.begin(WireWriter.size { write(result, to: &$0) }, table: result.table)
            cutter.piece.results.append(result)
        }
        return cutter.finish()
    }
}

/// Fills one piece after the other.
private struct PieceCutter {
    var piece: OrderedPiece
    private var pieces: [OrderedPiece] = []
    private let empty: OrderedPiece
    private let size: Int
    /// The maximum size of a piece without items.
    private let emptySize: Int
    private var names: TableNames
    private var used: Int
    private var isEmpty = true

    init(_ result: OrderedPiece, size: Int, schema: Schema) {
        var empty = result
        empty.rows = []
        empty.results = []
        empty.summary?.refusals = []
        empty.isLast = false
        empty.piece = 0
        self.empty = empty
        piece = empty
        self.size = size
        names = TableNames(schema)
        let names = names
        // The number of a piece takes up to 6 bytes with its tag, the flag of the last one 2, and a summary's length
        // may grow by 4 with refusals.
        emptySize = WireWriter.size { empty.write(to: &$0, names: names) } + 6 + 2 + 4
        used = emptySize
    }

    /// Starts the next piece when the item would make the current one too large, unless it is its first item.
    mutating func begin(_ itemSize: Int, table: Int?) {
        var cost = itemSize + nameCost(table)
        if !isEmpty, cost > size - used {
            next()
            cost = itemSize + nameCost(table)
        }
        used += cost
        isEmpty = false
        if let table { names.insert(table) }
    }

    mutating func finish() -> [OrderedPiece] {
        piece.isLast = true
        pieces.append(piece)
        return pieces
    }

    private func nameCost(_ table: Int?) -> Int {
        guard let table, !names.contains(table) else { return 0 }
        return names.size(of: table, field: OrderedPiece.Field.tableName)
    }

    private mutating func next() {
        pieces.append(piece)
        piece = empty
        piece.piece = pieces.count
        names.removeAll()
        used = emptySize
        isEmpty = true
    }
}

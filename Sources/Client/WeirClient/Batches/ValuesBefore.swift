/// The values before that edits of a table have: those that the server's row has beneath them.
struct ValuesBefore {
    let table: CapturedTable

    /// What a statement reads of an edit.
    var columns: [String] { (0..<table.words).map { "v\($0)" } + table.columns.map(\.side) }

    /// The values that are known.
    ///
    /// - Parameter first: where the statement has ``columns``.
    func read(_ row: Row, from first: Int) -> [(column: CapturedTable.Column, value: SQLValue)] {
        let known = RowWriter.Masks(words: (0..<table.words).map { row.integer(at: first + $0) })
        return table.columns.enumerated().filter { known.contains($0.element) }
            .map { (column: $0.element, value: row.value(at: first + table.words + $0.offset)) }
    }
}

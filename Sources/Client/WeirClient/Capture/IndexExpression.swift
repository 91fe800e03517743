/// An expression in a CREATE INDEX statement: a term, or the condition of a partial index.
struct IndexExpression: Equatable {
    /// It may end with a comment, and its names are those of the table's columns.
    let sql: String

    /// Whether it may name a column; of some that it does not name, too.
    func mayName(_ column: String) -> Bool {
        let text = foldedName(sql)
        return ["\"", "`"].contains { text.contains(foldedName(column.replacing($0, with: $0 + $0))) }
    }
}

/// What a CREATE INDEX statement says of the rows in the index: `CREATE INDEX name ON table (term, …) WHERE condition`.
struct IndexStatement {
    /// Columns, and expressions without the order that they may have.
    private(set) var terms: [IndexExpression] = []
    /// `nil` if the index has all rows.
    private(set) var condition: IndexExpression?

    init(_ statement: String) {
        var rest = statement[...]
        var depth = 0
        var term = rest
        // Where the order of the term begins.
        var order: String.Index?
        func end(_ term: Substring, at end: String.Index) -> IndexExpression {
            IndexExpression(sql: String(term[..<(order ?? end)]))
        }
        while let first = rest.first {
            if let quoted = Self.quoted(at: rest) {
                rest = rest.dropFirst(quoted)
                continue
            }
            if first.isLetter || first == "_" {
                let word = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "$" }
                rest = rest.dropFirst(word.count)
                switch word.uppercased() {
                case "WHERE" where depth == 0:
                    condition = IndexExpression(sql: String(rest))
                    return
                case "ASC" where depth == 1, "DESC" where depth == 1: order = word.startIndex
                default: break
                }
                continue
            }
            let place = rest.startIndex
            rest = rest.dropFirst()
            if first == ")" { depth -= 1 }
            if depth == 1 && first == "," || depth == 0 && first == ")" {
                terms.append(end(term, at: place))
                (term, order) = (rest, nil)
            }
            if first == "(" {
                depth += 1
                if depth == 1 { term = rest }
            }
        }
    }

    /// How long the string, the quoted name or the comment is with which a text begins; `nil` if it begins with none.
    private static func quoted(at text: Substring) -> Int? {
        for (begin, end) in [
            ("'", "'"), ("\"", "\""), ("`", "`"), ("[", "]"), ("--", "\n"), ("/*", "*/"),
        ] where text.hasPrefix(begin) {
            // A quote within quotes is doubled: what follows the first one is a text of its own here.
            let body = text.dropFirst(begin.count)
            return body.firstRange(of: end).map { text.distance(from: text.startIndex, to: $0.upperBound) }
                ?? text.count
        }
        return nil
    }
}

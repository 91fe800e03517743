/// The condition of a partial index: `WHERE …` in its CREATE INDEX statement.
struct IndexCondition: Equatable {
    /// An expression, which may end with a comment, and whose names are those of the table's columns.
    let sql: String

    /// - Returns: `nil` if the index has none.
    init?(ofIndex statement: String) {
        var rest = statement[...]
        var depth = 0
        while let first = rest.first {
            if let quoted = Self.quoted(at: rest) {
                rest = rest.dropFirst(quoted)
            } else if first.isLetter || first == "_" {
                let word = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "$" }
                rest = rest.dropFirst(word.count)
                if depth == 0, word.uppercased() == "WHERE" {
                    sql = String(rest)
                    return
                }
            } else {
                if first == "(" { depth += 1 }
                if first == ")" { depth -= 1 }
                rest = rest.dropFirst()
            }
        }
        return nil
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

    /// Whether it may name a column; of some that it does not name, too.
    func mayName(_ column: String) -> Bool {
        let text = foldedName(sql)
        return ["\"", "`"].contains { text.contains(foldedName(column.replacing($0, with: $0 + $0))) }
    }
}

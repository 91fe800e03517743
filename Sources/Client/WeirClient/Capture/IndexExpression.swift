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
    /// A column, or an expression.
    struct Term {
        /// With the order that it may have.
        let sql: String
        /// Without a word at its end that may be the order, or be the name of a column.
        let sqlWithoutOrder: String?
        /// Whether it fails with no row: a trigger has its value for rows that are not in the index, or are never stored, where the
        /// statement of the app must not fail.
        let isHarmless: Bool
    }

    private(set) var terms: [Term] = []
    /// `nil` if the index has all rows.
    private(set) var condition: IndexExpression?

    /// Functions that no value makes fail.
    private static let functions: Set<String> = [
        "coalesce", "date", "datetime", "hex", "ifnull", "iif", "instr", "julianday", "length", "lower", "ltrim", "max",
        "min",
        "nullif", "quote", "replace", "round", "rtrim", "strftime", "substr", "substring", "time", "trim", "typeof",
        "unicode",
        "upper",
    ]
    /// Words before a parenthesis that are no functions.
    private static let keywords: Set<String> = [
        "and", "between", "case", "cast", "else", "in", "is", "not", "or", "then", "when",
    ]
    /// Words that call functions which values can make fail.
    private static let refused: Set<String> = ["glob", "like", "match", "regexp"]

    init(_ statement: String) {
        var rest = statement[...]
        var depth = 0
        var term = rest
        // Where the term ends with a word that may be its order.
        var order: String.Index?
        var isHarmless = true
        /// A name that is a function's if a parenthesis follows.
        var name: String?
        while let first = rest.first {
            if let length = Self.quoted(at: rest) {
                if !rest.hasPrefix("--"), !rest.hasPrefix("/*") { (order, name) = (nil, "") }
                rest = rest.dropFirst(length)
            } else if first.isLetter || first == "_" {
                let word = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "$" }
                rest = rest.dropFirst(word.count)
                let folded = foldedName(String(word))
                if depth == 0, folded == "where" {
                    condition = IndexExpression(sql: String(rest))
                    return
                }
                order = depth == 1 && ["asc", "desc"].contains(folded) ? word.startIndex : nil
                if Self.refused.contains(folded) { isHarmless = false }
                name = folded
            } else if first.isWhitespace {
                rest = rest.dropFirst()
            } else {
                let place = rest.startIndex
                if rest.hasPrefix("->") { isHarmless = false }
                rest = rest.dropFirst()
                if first == ")" { depth -= 1 }
                if depth == 1 && first == "," || depth == 0 && first == ")" {
                    terms.append(
                        Term(
                            sql: String(term[..<place]), sqlWithoutOrder: order.map { String(term[..<$0]) },
                            isHarmless: isHarmless))
                    (term, isHarmless) = (rest, true)
                }
                if first == "(" {
                    if depth > 0, let name, !Self.functions.contains(name), !Self.keywords.contains(name) {
                        isHarmless = false
                    }
                    depth += 1
                    if depth == 1 { term = rest }
                }
                (order, name) = (nil, nil)
            }
        }
    }

    /// How long the string, the quoted name or the comment is with which a text begins; `nil` if it begins with none.
    private static func quoted(at text: Substring) -> Int? {
        if text.hasPrefix("--") {
            return text.firstIndex(where: \.isNewline).map { text.distance(from: text.startIndex, to: $0) + 1 }
                ?? text.count
        }
        for (begin, end) in [("'", "'"), ("\"", "\""), ("`", "`"), ("[", "]"), ("/*", "*/")] where text.hasPrefix(begin)
        {
            // A quote within quotes is doubled: what follows the first one is a text of its own here.
            let body = text.dropFirst(begin.count)
            return body.firstRange(of: end).map { text.distance(from: text.startIndex, to: $0.upperBound) }
                ?? text.count
        }
        return nil
    }
}

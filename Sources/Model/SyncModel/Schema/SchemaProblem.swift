/// One thing wrong with a declared schema, with the place, so that whoever read it from a file can add the line.
package struct SchemaProblem: Sendable, Hashable, CustomStringConvertible {
    /// The table as the declaration, or the version before it, spells it; `nil` when it concerns the whole.
    package let table: String?
    /// The column of that table; `nil` when it concerns the table.
    package let column: String?
    /// What is wrong and what to do.
    package let message: String

    /// States a problem.
    package init(table: String? = nil, column: String? = nil, message: String) {
        self.table = table
        self.column = column
        self.message = message
    }

    /// The place and the message.
    package var description: String {
        switch (table, column) {
        case (let table?, let column?): "\(table).\(column): \(message)"
        case (let table?, nil): "\(table): \(message)"
        default: message
        }
    }
}

/// Why a declaration makes no schema version: every problem found, at least one, in the order of the declaration.
package struct SchemaRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// What is wrong.
    package let problems: [SchemaProblem]

    /// Refuses a declaration.
    package init(problems: [SchemaProblem]) {
        precondition(!problems.isEmpty, "a refusal has a reason")
        self.problems = problems
    }

    /// One line for each problem.
    package var description: String { problems.map(\.description).joined(separator: "\n") }
}

import Foundation

/// Compiled statements of the app, of whose texts there may be any number: those that have run last.
struct RecentStatements {
    /// How many are kept.
    static let most = 64

    private var statements: [StatementText: (statement: Statement, use: Int)] = [:]
    /// Counts uses, so that the oldest one is known.
    private var uses = 0

    /// A statement that is kept.
    subscript(text: StatementText) -> Statement? {
        mutating get {
            guard let known = statements[text]?.statement else { return nil }
            uses += 1
            statements[text]?.use = uses
            return known
        }
    }

    /// Keeps a statement instead of the one that has not run for the longest time, which is finalized once nothing runs it.
    mutating func keep(_ statement: Statement, as text: StatementText) {
        if statements.count >= Self.most, let oldest = statements.min(by: { $0.value.use < $1.value.use }) {
            statements[oldest.key] = nil
        }
        uses += 1
        statements[text] = (statement, uses)
    }

    /// Finalizes all of them.
    mutating func removeAll() {
        for (statement, _) in statements.values { statement.finalize() }
        statements = [:]
    }
}

/// A statement's text, of which each byte counts: strings are equal also if they differ in how characters are composed.
struct StatementText: Hashable {
    let sql: String

    static func == (left: Self, right: Self) -> Bool {
        // Whatever runs is looked up: many bytes are compared at once.
        var (left, right) = (left.sql, right.sql)
        return left.withUTF8 { left in
            right.withUTF8 { right in
                guard left.count == right.count, let one = left.baseAddress, let other = right.baseAddress else {
                    return left.isEmpty && right.isEmpty
                }
                return memcmp(one, other, left.count) == 0
            }
        }
    }
}

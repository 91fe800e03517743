/// Counts the resets of what the file has of the server: its vector begins again, everything must be pulled, or its account ends.
///
/// An answer that was asked for before the last one would restore a part of the vector without its rows, or write rows of the account before.
/// So a session applies it only if another process has reset nothing since. The count continues across accounts.
struct Resets {
    let database: Database

    static let key = "resets"

    var count: Int64 {
        get throws { try database.integer("SELECT value FROM weir_meta WHERE key = '\(Self.key)'") ?? 0 }
    }

    /// Records one, as part of the open transaction.
    func record() throws { try database.setMeta(Self.key, .integer(count + 1)) }
}

extension ClientFile {
    /// Runs transactions of a session, each of which fails if another process, or a call of the app, has reset something since.
    ///
    /// - Parameter count: how many resets there were when the session has read the file; moved by its own ones.
    /// - Throws: `WeirError.staleFile`.
    func requiring<Result>(resets count: inout Int64, _ body: () throws -> Result) throws -> Result {
        requiredResets = count
        defer { requiredResets = nil }
        let result = try body()
        count = requiredResets ?? count
        return result
    }
}

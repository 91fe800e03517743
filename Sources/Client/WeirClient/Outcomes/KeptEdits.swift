/// The changes that the server has not stored, in `weir_aside`: those that nobody has decided about, and the log of those that somebody has.
struct KeptEdits {
    let database: Database

    /// A change that is about to be kept.
    struct New {
        let table: Int
        let key: SQLValue
        let code: String
        let message: String
        /// As it was sent.
        let change: ArraySlice<UInt8>
        /// The values that the app had seen in the columns of the change, as JSON; `nil` if they are not known.
        var base: [UInt8]?
        /// All values of the row as the app had them, as JSON; `nil` if the app had deleted it.
        var whole: [UInt8]?
        /// The server's row, as it came.
        var row: ArraySlice<UInt8>?
    }

    /// - Parameter ending: how it has ended, if nobody has to decide.
    /// - Returns: its number.
    func keep(_ new: New, ending: KeptEdit.Ending? = nil) throws -> Int64 {
        let number = try database.takeNumbers(of: "last_aside")
        let values: [SQLValue] = [
            .integer(number), .integer(Int64(new.table)), new.key, .text(new.code), .text(new.message),
            .blob(Array(new.change)), Self.value(new.base), Self.value(new.whole),
            Self.value(new.row.map { Array($0) }),
            ending.map { .text($0.rawValue) } ?? .null,
        ]
        try database.run(
            """
            INSERT INTO weir_aside (number, tbl, id, code, message, change, base, whole, row, at, resolution, resolved_at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, \(Self.now), ?10, CASE WHEN ?10 IS NULL THEN NULL ELSE \(Self.now) END)
            """, values)
        return number
    }

    /// Keeps a change that this device refuses itself, which is its outcome.
    ///
    /// - Parameter isSent: whether it is of the batch.
    func refuse(_ new: New, isSent: Bool) throws {
        let kept = try keep(new)
        try TrackedOutcomes(database: database).complete(
            new.table, new.key, isSent: isSent,
            TrackedOutcomes.Result(status: .refused, code: new.code, kept: kept))
    }

    private static func value(_ bytes: [UInt8]?) -> SQLValue { bytes.map { .blob($0) } ?? .null }

    private static let now = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"

    /// The server's row came in another history, whose timeStamps may be greater than those of the new one.
    func forgetServerRow(_ table: Int, _ key: SQLValue) throws {
        try database.run(
            "UPDATE weir_aside SET row = NULL WHERE tbl = ?1 AND id IS ?2 AND resolution IS NULL",
            [.integer(Int64(table)), key])
    }

    /// Records how a change has ended.
    func end(_ number: Int64, _ ending: KeptEdit.Ending) throws {
        try database.run(
            "UPDATE weir_aside SET resolution = ?2, resolved_at = \(Self.now) WHERE number = ?1",
            [.integer(number), .text(ending.rawValue)])
    }

    /// Whether any waits for a decision.
    var areOpen: Bool {
        get throws { try database.value("SELECT 1 FROM weir_aside WHERE resolution IS NULL LIMIT 1") != nil }
    }

    /// Ends those of a row that a later change has sent again: all of their columns, for the same owner.
    ///
    /// - Parameter change: as it was sent, and stored.
    func endSentAgain(_ table: Int, _ key: SQLValue, by later: ChangeContent) throws {
        let open = try database.map(
            "SELECT number, change FROM weir_aside WHERE tbl = ?1 AND id IS ?2 AND resolution IS NULL",
            [.integer(Int64(table)), key]
        ) { (number: $0.integer(at: 0), change: $0.bytes(at: 1)) }
        if open.isEmpty { return }
        for kept in open {
            let earlier = try ChangeContent(kept.change[...])
            guard earlier.owner == later.owner else { continue }
            let isCovered = later.isDeletion || !earlier.isDeletion && earlier.columns.isSubset(of: later.columns)
            if isCovered { try end(kept.number, .sentAgain) }
        }
    }

    // MARK: The log

    /// Removes the oldest of those that have ended, beyond the limits of the log.
    func prune(_ limit: ConflictLogLimit) throws {
        let size = "length(change) + ifnull(length(base), 0) + ifnull(length(whole), 0) + ifnull(length(row), 0)"
        try database.run(
            """
            DELETE FROM weir_aside WHERE number IN (SELECT number FROM (
                SELECT number, row_number() OVER (ORDER BY number DESC) AS place,
                    sum(\(size)) OVER (ORDER BY number DESC) AS bytes
                FROM weir_aside WHERE resolution IS NOT NULL) WHERE place > ?1 OR bytes > ?2)
            """, [.integer(Int64(limit.edits)), .integer(Int64(limit.bytes))])
    }

    func removeEnded() throws { try database.run("DELETE FROM weir_aside WHERE resolution IS NOT NULL") }
}

/// How much the log of changes that have ended may have; the oldest ones are removed first.
///
/// Changes that nobody has decided about have no limit.
public struct ConflictLogLimit: Equatable, Sendable {
    /// How many changes; 0 keeps none.
    public var edits: Int
    /// The bytes of their values.
    public var bytes: Int

    /// Makes a limit: 1000 changes with 4 MiB of values by default.
    public init(edits: Int = 1000, bytes: Int = 4 << 20) { (self.edits, self.bytes) = (edits, bytes) }
}

/// What a change that was sent has.
struct ChangeContent {
    /// The change itself.
    let json: ArraySlice<UInt8>
    private(set) var table = ""
    private(set) var id = ""
    private(set) var isDeletion = false
    /// The server's names.
    private(set) var columns: Set<String> = []
    private(set) var values: [UInt8] = []
    /// `nil`: the account.
    private(set) var owner: String?
    /// The newest version of the row that the change has seen; 0 if the server was not known to have it.
    private(set) var base: Int64 = 0
    var isCreation: Bool { base == 0 }

    init(_ change: ArraySlice<UInt8>) throws {
        json = change
        var reader = JSONReader(change)
        try reader.object { reader, name in
            switch name {
            case "table": table = try reader.string()
            case "id": id = try reader.string()
            case "deleted": isDeletion = try reader.boolean()
            case "syncId": owner = try reader.string()
            case "base": base = try reader.integer()
            case "values":
                let text = try reader.text()
                values = Array(text)
                var part = JSONReader(text)
                try part.object { reader, name in
                    columns.insert(name)
                    try reader.skip()
                }
            default: try reader.skip()
            }
        }
    }
}

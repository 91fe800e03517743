/// When another connection has last committed to the file, as far as it was looked for.
///
/// A first sync is waited for, so its transactions follow each other, and a write of the app finds the file locked most of the time. An app that
/// writes meanwhile is likely to write again: from then on there are pauses for it.
struct ForeignWrites {
    /// How long after a write the app is taken to be writing.
    static let span = Duration.seconds(10)

    private var version: Int64?
    private var last: Duration?

    /// Looks whether there was another one, outside of a transaction.
    ///
    /// - Returns: whether there was one a short time ago.
    mutating func areRecent(in database: Database, now: Duration) throws -> Bool {
        let found = try database.foreignVersion
        if found != version {
            if version != nil { last = now }
            version = found
        }
        return last.map { now - $0 < Self.span } ?? false
    }
}

import Foundation

/// Another process syncs the file at the moment.
package struct LeaseHeld: Error, Equatable, Sendable {
    package init() {}
}

/// The right to sync a file, which one process at a time has.
///
/// It is a row that runs out, and no lock: a process that was suspended or killed keeps others waiting for some time only. Two
/// processes that sync at once would lose nothing, since batches are sent as they were frozen, and older rows never replace newer
/// ones; the lease saves the second one the work.
package struct Lease {
    /// How long it is held without being renewed: more than the longest request takes.
    package static let duration: TimeInterval = 90

    private let holder: String

    package init(holder: String) { self.holder = holder }

    /// Takes or renews the lease.
    ///
    /// - Throws: `LeaseHeld`.
    package func take(in database: Database, now: Date) throws {
        let time = now.timeIntervalSince1970
        try database.transaction {
            let other = try database.value(
                "SELECT value FROM weir_meta WHERE key = 'lease_holder' AND value <> ?1", [.text(holder)])
            let expiry = try database.value("SELECT value FROM weir_meta WHERE key = 'lease_expiry'")
            // A time too far ahead was written before the clock was set back.
            if other != nil, case .real(let expiry) = expiry, time < expiry, expiry <= time + Self.duration {
                throw LeaseHeld()
            }
            try database.run(
                "INSERT OR REPLACE INTO weir_meta (key, value) VALUES ('lease_holder', ?1), ('lease_expiry', ?2)",
                [.text(holder), .real(time + Self.duration)])
        }
    }

    /// Gives the lease back, if it is this holder's.
    package func release(in database: Database) throws {
        try database.run(
            """
            DELETE FROM weir_meta WHERE key IN ('lease_holder', 'lease_expiry')
            AND (SELECT value FROM weir_meta WHERE key = 'lease_holder') = ?1
            """, [.text(holder)])
    }
}

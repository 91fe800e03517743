import Foundation

/// Another process syncs the file at the moment.
package struct LeaseHeld: Error, Equatable, Sendable {
    package init() {}
}

/// The right to sync a file, which one process at a time has.
///
/// It is a row that runs out, and no lock: a process that was suspended keeps others waiting for some time only, and one that is gone
/// not at all. Two processes that sync at once would lose nothing, since batches are sent as they were frozen, and older rows never
/// replace newer ones; the lease saves the second one the work.
package struct Lease {
    /// How long it is held without being renewed.
    package static let duration: TimeInterval = 90
    /// How often it is renewed while a response is waited for.
    package static let renewal: Duration = .seconds(30)

    /// The holders that are in this process.
    private static let holders = Protected<Set<String>>([])

    private let holder: String
    private let process: Int32

    /// - Parameters:
    ///   - holder: is different for each that may hold it.
    ///   - process: the one in which the holder is.
    package init(holder: String, process: Int32 = ProcessInfo.processInfo.processIdentifier) {
        self.holder = holder
        self.process = process
    }

    /// Takes the lease, or renews it if a third of its time is over.
    ///
    /// - Throws: `LeaseHeld`.
    package func take(in database: Database, now: Date) throws {
        let time = now.timeIntervalSince1970
        if let held = try held(in: database), held.holder == holder, let expiry = held.expiry,
            time + Self.duration * 2 / 3 < expiry, expiry <= time + Self.duration
        {
            return
        }
        Self.holders.withLock { _ = $0.insert(holder) }
        try database.transaction(writesRows: false) {
            // A time too far ahead was written before the clock was set back.
            if let held = try held(in: database), held.holder != holder, exists(held),
                let expiry = held.expiry, time < expiry, expiry <= time + Self.duration
            {
                throw LeaseHeld()
            }
            try database.run(
                """
                INSERT OR REPLACE INTO weir_meta (key, value)
                VALUES ('lease_holder', ?1), ('lease_process', ?2), ('lease_expiry', ?3)
                """, [.text(holder), .integer(Int64(process)), .real(time + Self.duration)])
        }
    }

    private func held(in database: Database) throws -> (holder: String, process: Int32, expiry: TimeInterval?)? {
        try database.map(
            """
            SELECT h.value, p.value, e.value FROM weir_meta AS h, weir_meta AS p, weir_meta AS e
            WHERE h.key = 'lease_holder' AND p.key = 'lease_process' AND e.key = 'lease_expiry'
            """
        ) { row in
            var expiry: TimeInterval?
            if case .real(let time) = row.value(at: 2) { expiry = time }
            return (
                holder: row.string(at: 0), process: Int32(truncatingIfNeeded: row.integer(at: 1)), expiry: expiry
            )
        }.first
    }

    /// Gives the lease back, if it is this holder's.
    package func release(in database: Database) throws {
        try database.run(
            """
            DELETE FROM weir_meta WHERE key IN ('lease_holder', 'lease_process', 'lease_expiry')
            AND (SELECT value FROM weir_meta WHERE key = 'lease_holder') = ?1
            """, [.text(holder)])
        Self.holders.withLock { _ = $0.remove(holder) }
    }

    /// Whether the holder's process exists, as far as this one may know.
    private func exists(_ held: (holder: String, process: Int32, expiry: TimeInterval?)) -> Bool {
        // In a container each process may have the number of the one before it.
        if held.process == process { return Self.holders.withLock { $0.contains(held.holder) } }
        return kill(held.process, 0) == 0 || errno != ESRCH
    }
}

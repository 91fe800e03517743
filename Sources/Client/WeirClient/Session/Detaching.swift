import Foundation

/// What becomes of the app's rows when a file is detached from its account.
public enum DetachedRows: Int64, Sendable {
    /// They are removed from the synced tables, and the account's from tables that were synced before, as for the next user of the device; the
    /// account has them at the server. Rows whose deletion a trigger of the app ignores stay, and those of synced tables are adopted by the next
    /// account.
    case remove = 1
    /// The account's own stay, as rows of no account: the next account that the file is attached to adopts them. If it is the same one, those
    /// that were deleted elsewhere meanwhile are created again. Rows of linked owners are removed, as they are not the account's to keep.
    case keep = 2
}

extension Weir {
    /// Ends the file's attachment to its account, as when the user logs out; afterwards it can be attached to another one.
    ///
    /// Syncing ends, and so does what the file knows of the account: it is another device from then on. Where the call throws, a Weir that was
    /// started syncs on. An app that keeps a file for each account closes it instead, and need not pull everything again when the user comes
    /// back.
    ///
    /// - Parameters:
    ///   - rows: what becomes of the rows of the synced tables.
    ///   - discardingUnsent: also edits that the server does not have are dropped, and those that it has not stored.
    /// - Throws: `WeirError.unsent` if there are such edits, unless they are to be discarded: then nothing was changed, or only rows that the
    ///   server has are gone and come again with the next session. `WeirError.inUse` if another process syncs the file, and
    ///   `WeirError.otherAccount` if it has attached the file to another account. `WeirError`. It can be repeated, also in another process
    ///   after this one was killed.
    public func detach(_ rows: DetachedRows = .remove, discardingUnsent: Bool = false) async throws {
        guard !isDetaching else { throw WeirError.inUse }
        isDetaching = true
        defer {
            isDetaching = false
            startRunner()
        }
        await stopRunner()
        await endSession()
        let file = try openFile
        let record = SessionRecord(database: file.database)
        guard let account = try record.account else { throw WeirError.notAttached }
        // Another process has attached it since.
        if let attachment, attachment.account != account { throw WeirError.otherAccount(attached: account.name) }
        let lease = Lease(holder: UUID().uuidString)
        let now = attachment?.options.now ?? { Date() }
        do {
            try lease.take(in: file.database, now: now())
        } catch is LeaseHeld {
            throw WeirError.inUse
        }
        let detaching = Detaching(file: file, rows: rows, discardsUnsent: discardingUnsent)
        do {
            try file.foldLogs()
            try detaching.begin()
            while try detaching.removeNextRows() {
                // The app's calls of Weir, and its writes, come in between.
                await Task.yield()
                try require(file)
                try lease.take(in: file.database, now: now())
            }
            try detaching.end()
        } catch {
            release(lease)
            throw error
        }
        isStarted = false
        attachment = nil
        changes.update { $0 += 1 }
        statuses.update { $0 = SyncStatus() }
    }
}

/// Removes what a file knows of an account, in transactions of some milliseconds.
package struct Detaching {
    private let file: ClientFile
    private let rows: DetachedRows
    private let discardsUnsent: Bool

    private static let slice = 1000

    package init(file: ClientFile, rows: DetachedRows, discardsUnsent: Bool) {
        (self.file, self.rows, self.discardsUnsent) = (file, rows, discardsUnsent)
    }

    private var database: Database { file.database }

    /// If the process is killed from now on, everything is pulled again, should the app sync instead of repeating the call.
    package func begin() throws {
        try database.transaction {
            try requireNothingUnsent()
            try Vector(database: database).forget()
        }
    }

    /// - Returns: whether others follow.
    package func removeNextRows() throws -> Bool {
        try file.foldLogs()
        return try file.applying { _ in
            try file.fold()
            // The app may have written meanwhile.
            try requireNothingUnsent()
            if rows == .keep { return try removeNextRowsOfLinkedOwners() }
            for table in file.tables {
                // SQLite permits NULL in keys that are not declared NOT NULL.
                try database.run("DELETE FROM \(table.quotedName) WHERE \(table.quotedKey) IS NULL")
                if try !removeNextRows(of: table).isEmpty { return true }
            }
            return try removeNextRowsOfOthers()
        }
    }

    /// Removes rows of linked owners, also those that were added for them and not sent.
    private func removeNextRowsOfLinkedOwners() throws -> Bool {
        let record = SessionRecord(database: database)
        let owners = try RowOwners(database: database)
        for owner in try record.owners { try owners.recordInherited(from: owner.syncID, among: file.tables) }
        let account = SQLValue.text(try record.account?.syncID ?? "")
        for case (let number, let table?) in try CapturedTable.registered(in: database) {
            let keys = try removeNextRows(
                of: table,
                where: """
                    \(table.quotedKey) IN (SELECT id FROM \(table.state) WHERE owner <> ?1 AND NOT deleted
                    UNION ALL SELECT id FROM weir_owner WHERE tbl = \(number) AND sync_id <> ?1)
                    """, [account])
            if keys.isEmpty { continue }
            if file.isParent(table) {
                for key in keys { try OrphanRows.recordRemoval(of: key, from: table, in: database) }
            }
            return true
        }
        return false
    }

    /// Removes the account's rows of tables that are no longer listed: the next account would adopt them if they were listed again.
    private func removeNextRowsOfOthers() throws -> Bool {
        for case (let number, let table?) in try CapturedTable.registered(in: database)
        where !file.tables.contains(where: { $0.number == number }) {
            let known = [table.state, table.edit, table.sent, table.log].map { "SELECT id FROM \($0)" }
            let isKnown = "\(table.quotedKey) IN (\(known.joined(separator: " UNION ALL ")))"
            if try !removeNextRows(of: table, where: isKnown).isEmpty { return true }
        }
        return false
    }

    /// Removes the next rows of a table that have a key, in the order of their keys.
    ///
    /// - Parameters:
    ///   - condition: which of them.
    ///   - values: the parameters of the condition.
    /// - Returns: the keys of those that were removed; none if there are no others than those that triggers of the app keep.
    private func removeNextRows(
        of table: CapturedTable, where condition: String = "TRUE", _ values: [SQLValue] = []
    ) throws -> [SQLValue] {
        let key = table.quotedKey
        let deletion = try database.statement("DELETE FROM \(table.quotedName) WHERE \(RowWriter.isKey(table))")
        var last: SQLValue?
        while true {
            let keys = try database.map(
                """
                SELECT \(key) FROM \(table.quotedName) WHERE \(key) IS NOT NULL AND \(condition)
                \(last == nil ? "" : "AND \(key) > ?\(values.count + 1)") ORDER BY \(key) LIMIT \(Self.slice)
                """, values + (last.map { [$0] } ?? [])
            ) { $0.value(at: 0) }
            let removed = try keys.filter { try deletion.run([$0]) > 0 }
            // A trigger of the app may have kept all of these.
            guard removed.isEmpty, let greatest = keys.last else { return removed }
            last = greatest
        }
    }

    /// Forgets the account, in one transaction.
    package func end() throws {
        try file.foldLogs()
        try file.applying { _ in
            try file.fold()
            try requireNothingUnsent()
            for table in try database.map("SELECT number FROM weir_table", [], { Int($0.integer(at: 0)) }) {
                // Logs of tables that are no longer listed are not folded.
                for side in [
                    CapturedTable.log(table), CapturedTable.edit(table), CapturedTable.sent(table),
                    CapturedTable.state(table),
                ] {
                    try database.run("DELETE FROM \(side)")
                }
            }
            // Rows that stay may have lost their parents, which the next account's session finds out.
            let parents = rows == .keep ? [] : ["removed", "orphan"]
            for table in [
                "batch", "key_change", "vector", "parked", "held", "aside", "outcome", "writer", "owner", "grant",
                "backfill",
            ] + parents {
                try database.run("DELETE FROM weir_\(table)")
            }
            // Numbers are not given again: an app may have kept those of the account before.
            try database.run(
                """
                DELETE FROM weir_meta
                WHERE key NOT IN ('format', 'last_batch', 'last_outcome', 'last_place', 'last_aside', '\(Resets.key)')
                """)
            try Resets(database: database).record()
            try database.run("UPDATE weir_table SET incomplete = 0")
        }
        file.serverSchema = nil
    }

    private func requireNothingUnsent() throws {
        if discardsUnsent { return }
        let tables = try database.map("SELECT number FROM weir_table") { Int($0.integer(at: 0)) }
        let pending = try tables.reduce(0) { count, table in
            // What was captured of a table that is no longer listed may be in its log still.
            let edits = try database.integer(
                """
                SELECT (SELECT count(*) FROM \(CapturedTable.edit(table)))
                + (SELECT count(*) FROM \(CapturedTable.sent(table)))
                + (SELECT count(DISTINCT id) FROM \(CapturedTable.log(table))
                    WHERE id NOT IN (SELECT id FROM \(CapturedTable.edit(table))))
                """)
            return count + Int(edits ?? 0)
        }
        let held = Int(try database.integer("SELECT count(*) FROM (SELECT DISTINCT tbl, id FROM weir_held)") ?? 0)
        let kept = Int(try database.integer("SELECT count(*) FROM weir_aside WHERE resolution IS NULL") ?? 0)
        // Rows without a key are sent by no session.
        let keyless =
            try rows == .keep
            ? 0
            : file.tables.reduce(0) { count, table in
                let query = "SELECT count(*) FROM \(table.quotedName) WHERE \(table.quotedKey) IS NULL"
                return try count + Int(database.integer(query) ?? 0)
            }
        let unsent = pending + held + keyless
        if unsent + kept > 0 { throw WeirError.unsent(rows: unsent, keptEdits: kept) }
    }
}

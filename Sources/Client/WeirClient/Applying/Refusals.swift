/// What triggers of the app refuse in a way that ends the transaction, as RAISE(ROLLBACK) does, so that it is not tried again.
///
/// What was written before in the transaction is lost then, and with it what turns capturing off: the answer is applied again without the
/// row. A refusal that leaves the transaction open is not recorded, except that a row could not be put back after an exchange of unique values.
package struct Refusals {
    /// One version of an owner's row.
    struct Version: Hashable {
        let table: String
        let id: String
        let owner: String
        let timeStamp: Int64
    }

    /// What is done with a version of a row.
    struct Step: Hashable {
        let version: Version
        /// Whether it is the removal of the version before, to free its unique values or since it has no parent, or its return to the table.
        var isRemoval = false
    }

    /// Those of the steps.
    private var reasons: [Step: String] = [:]

    package var count: Int { reasons.count }

    /// Why a step is not tried.
    func reason(_ step: @autoclosure () -> Step) -> String? { reasons.isEmpty ? nil : reasons[step()] }

    mutating func add(_ step: Step, _ reason: String) { reasons[step] = reason }

    /// The timeStamp of a row that goes with all of its owner's, whatever its version.
    static let anyVersion: Int64 = 0

    /// Forgets which rows have stayed, once the others of their owner are removed.
    mutating func forgetRemovals(of owner: String) {
        reasons = reasons.filter { $0.key.version.owner != owner || $0.key.version.timeStamp != Self.anyVersion }
    }

    /// Forgets all that is not of a version that waits, at the end of an answer: no more are known than rows wait in the file, or stay while
    /// their owner's are removed.
    mutating func keepWaiting(in database: Database) throws {
        for step in reasons.keys where step.version.timeStamp != Self.anyVersion {
            let version = step.version
            let waiting = try database.value(
                "SELECT 1 FROM weir_parked WHERE name = ?1 AND id = ?2 AND sync_id = ?3 AND time_stamp = ?4",
                [.text(version.table), .text(version.id), .text(version.owner), .integer(version.timeStamp)])
            if waiting == nil { reasons[step] = nil }
        }
    }
}

extension Refusals.Step {
    init(_ row: ServerRow, isRemoval: Bool = false) {
        version = Refusals.Version(table: row.table, id: row.id, owner: row.syncID, timeStamp: row.timeStamp)
        self.isRemoval = isRemoval
    }
}

extension Applying {
    /// - Parameter owner: `nil` for the account itself.
    func version(
        _ timeStamp: Int64, of key: SQLValue, _ owner: String?, _ writer: RowWriter
    ) -> Refusals.Version {
        let id = writer.table.definition.keyKind.id(of: key) ?? []
        return Refusals.Version(
            table: writer.server.name, id: String(decoding: id, as: UTF8.self), owner: owner ?? account,
            timeStamp: timeStamp)
    }

    /// A trigger of the app has rolled back the transaction: the answer is to be applied again, without the step that has failed then.
    struct RolledBack: Error {}

    /// Runs a step that a constraint or a trigger of the app may refuse.
    ///
    /// - Throws: `RolledBack`, once for each step; `Unwritable`, and then nothing was changed.
    func refusable<Result>(_ step: @autoclosure () -> Refusals.Step, _ body: () throws -> Result) throws -> Result {
        if let reason = file.refusals.reason(step()) { throw RowWriter.Unwritable(reason: reason) }
        do {
            return try body()
        } catch let error as WeirError {
            guard error.isConstraint, let reason = error.refusal else { throw error }
            if database.isInTransaction { throw RowWriter.Unwritable(reason: reason) }
            file.refusals.add(step(), reason)
            throw RolledBack()
        }
    }

    /// Deletes a row, which a trigger of the app may keep.
    ///
    /// - Returns: whether the table does not have it any more.
    /// - Throws: `RolledBack`, once for each version.
    func remove(_ key: SQLValue, from table: CapturedTable, _ version: Refusals.Version) throws -> Bool {
        let deletion = try database.statement("DELETE FROM \(table.quotedName) WHERE \(RowWriter.isKey(table))")
        do {
            try refusable(Refusals.Step(version: version, isRemoval: true)) {
                _ = try deletion.runRefusable([key], in: database)
            }
        } catch is RowWriter.Unwritable {}
        // RAISE(IGNORE) before the deletion is no error, and RAISE(FAIL) after it leaves the row deleted.
        return try !table.has(key, in: database)
    }
}

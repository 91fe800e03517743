/// Decides about conflicts of a table without asking the user: ``Weir/setResolver(_:for:)``.
///
/// A resolver is asked about conflicts and not about refusals, which somebody has to see. Without one, all of them wait for
/// ``Weir/resolve(_:_:)``, as do those with a version of the server's about which ten decisions were written, and not stored.
public struct ConflictResolver: Sendable {
    let deletionsWin: Bool
    let decide: @Sendable (KeptEdit) async throws -> Resolution?

    /// Makes a resolver.
    ///
    /// - Parameters:
    ///   - deletionsWin: whether a deletion of either side wins without the closure being asked: the app's is repeated, and a row that
    ///     another device has deleted stays so.
    ///   - decide: is asked with the values that the app had seen, the app's and the server's. `nil`, or an error, leaves the conflict to
    ///     the user. It may take long, and is asked about one conflict of a table at a time; syncing does not wait for it.
    public init(deletionsWin: Bool = true, _ decide: @escaping @Sendable (KeptEdit) async throws -> Resolution?) {
        self.deletionsWin = deletionsWin
        self.decide = decide
    }

    /// The app's values are written again.
    public static let keepLocal = ConflictResolver { _ in .keepLocal }

    /// The server's row stays.
    public static let acceptServer = ConflictResolver { _ in .acceptServer }

    /// Columns that only one side has changed are merged; where both have changed one to different values, the user decides.
    public static let mergeColumns = ConflictResolver { edit in
        guard edit.server != nil, edit.local.keys.allSatisfy({ edit.base[$0] != nil }), edit.conflicting.isEmpty else {
            return nil
        }
        return .merge(edit.local)
    }

    /// The decision about a conflict; `nil` leaves it to the user.
    func resolution(of edit: KeptEdit) async -> Resolution? {
        if deletionsWin {
            if edit.isDeletion { return .keepLocal }
            if edit.server == nil, edit.version != nil { return .acceptServer }
        }
        do {
            return try await decide(edit)
        } catch {
            // The conflict stays where the user finds it.
            return nil
        }
    }
}

/// The resolvers of an app's tables, and what they are asked at the moment.
struct ConflictResolvers {
    var byTable: [Int: ConflictResolver] = [:]
    /// By table, one at a time.
    var tasks: [Int: Task<Void, Never>] = [:]
    /// The version of the server's row of which a resolver has left a conflict to the user, by the conflict's number.
    var left: [Int64: Int64] = [:]
    /// How many of its decisions about a version of a row were written.
    var written: [RowReference: (version: Int64, count: Int)] = [:]

    /// If the server still finds a conflict with the same version after so many, the user decides.
    static let mostWritten = 10
}

extension Weir {
    /// Decides about conflicts of a table from now on, also about those that are kept already.
    ///
    /// Resolvers are the app's code, so they are set at each start. They are asked when conflicts have been recorded, outside of
    /// transactions and sessions; the decision is carried out as by ``resolve(_:_:)``, and sent with the next session. Another process
    /// that has none leaves conflicts to this one. One whose decision cannot be written, since the file is locked or the disk is full, is
    /// asked again with the next session. What a resolver holds is kept until ``close()``.
    ///
    /// - Parameters:
    ///   - resolver: `nil` leaves them to the user.
    ///   - table: one of those that were opened.
    /// - Throws: `WeirError`.
    public func setResolver(_ resolver: ConflictResolver?, for table: String) throws {
        let number = try captured([table])[0].number
        resolvers.byTable[number] = resolver
        (resolvers.left, resolvers.written) = ([:], [:])
        resolvers.tasks.removeValue(forKey: number)?.cancel()
        askResolvers()
    }

    /// Asks resolvers about conflicts that they have not been asked about.
    func askResolvers() {
        for number in resolvers.byTable.keys where resolvers.tasks[number] == nil {
            resolvers.tasks[number] = Task { [weak self] in
                while let (edit, resolver) = await self?.nextConflict(ofTable: number) {
                    let resolution = await resolver.resolution(of: edit)
                    if Task.isCancelled { return }
                    guard await self?.carryOut(resolution, of: edit, ofTable: number) ?? false else { return }
                }
            }
        }
    }

    /// Waits until resolvers have been asked about all conflicts that are kept.
    package func finishResolving() async {
        askResolvers()
        for task in resolvers.tasks.values { await task.value }
    }

    func endResolvers() {
        for task in resolvers.tasks.values { task.cancel() }
        resolvers = ConflictResolvers()
    }

    /// - Returns: `nil` at the end, after which another task is begun with the next conflict.
    private func nextConflict(ofTable number: Int) -> (KeptEdit, ConflictResolver)? {
        if Task.isCancelled { return nil }
        do {
            if let resolver = resolvers.byTable[number], !isSuspended, let edit = try nextConflict(number) {
                return (edit, resolver)
            }
        } catch {
            // The file cannot be read at the moment. The next session asks again.
        }
        resolvers.tasks[number] = nil
        return nil
    }

    private func nextConflict(_ table: Int) throws -> KeptEdit? {
        let file = try openFile
        guard file.tables.contains(where: { $0.number == table }) else { return nil }
        let open = try file.database.map(
            """
            SELECT a.number, max(ifnull(r.time_stamp, 0), ifnull((SELECT max(w.time_stamp) FROM weir_parked AS w
            WHERE w.tbl = a.tbl AND w.key = a.id), 0)) FROM weir_aside AS a LEFT JOIN \(CapturedTable.state(table)) AS r ON r.id = a.id
            WHERE a.tbl = \(table) AND a.resolution IS NULL AND a.code = 'conflict' ORDER BY a.number
            """
        ) { (number: $0.integer(at: 0), version: $0.integer(at: 1)) }
        guard let next = open.first(where: { resolvers.left[$0.number] != $0.version }) else { return nil }
        // It is asked about each version once, unless the decision could not be written.
        resolvers.left[next.number] = next.version
        return try file.keptEdits(where: "a.number = ?1", [.integer(next.number)]).first
    }

    /// - Returns: whether other conflicts are asked about; if not, the file cannot be used at the moment.
    private func carryOut(_ resolution: Resolution?, of edit: KeptEdit, ofTable number: Int) async -> Bool {
        guard let resolution else { return true }
        do {
            // It is asked again about a version that has come meanwhile.
            let newest = try openFile.keptEdits(where: "a.number = ?1", [.integer(edit.number)]).first
            guard newest?.version == edit.version, mayCarryOut(resolution, of: edit) else { return true }
            try await resolve(edit, resolution)
        } catch let error as WeirError where error.isOfFile {
            // The next session, or the end of the suspension, asks again.
            if !Task.isCancelled { (resolvers.left[edit.number], resolvers.tasks[number]) = (nil, nil) }
            return false
        } catch {
            // A constraint refuses the values, or the table has no such columns: the conflict stays where the user finds it.
        }
        return true
    }

    /// Counts a decision that writes: the server may find the same conflict again, under another number.
    private func mayCarryOut(_ resolution: Resolution, of edit: KeptEdit) -> Bool {
        if resolution == .acceptServer { return true }
        let row = RowReference(table: edit.table, key: edit.key)
        var written = resolvers.written[row] ?? (0, 0)
        if written.version != edit.version ?? 0 { written = (edit.version ?? 0, 0) }
        written.count += 1
        resolvers.written[row] = written
        return written.count <= ConflictResolvers.mostWritten
    }
}

import SQLite
import SyncModel

/// Finds the current versions of the rows of conflicts and refusals, starting at the locators in their results.
///
/// A row that was written since is among the later rows of its creating device. Their number is not bounded, so the
/// search runs in steps, between which the thread serves other reads.
struct RowSearch: Sendable {
    /// The maximum number of rows that one step reads.
    static let stepRows = 10_000

    private struct Row: Hashable {
        let table: Int64
        let id: RowID
    }

    /// The search among the rows of one creating device.
    private struct DeviceSearch {
        let knowledgeID: KnowledgeID
        /// The locators not yet looked up, with the indexes of the changes that show the row.
        var locators: [(timeStamp: TimeStamp, row: Row, changes: [Int])] = []
        /// The rows that are no longer at their locators.
        var moved: [Row: [Int]] = [:]
        /// The timeStamp up to which later rows were scanned.
        var reached: TimeStamp
        /// The newest timeStamp of the locators.
        var newest = TimeStamp.zero
    }

    /// The numbers of an owner and a creating device in the file.
    private struct Range {
        let owner: Int64
        let device: Int64
    }

    /// The owner of the rows.
    let owner: SyncID
    private var searches: [DeviceSearch] = []
    /// The rows found so far, by the index of the change.
    private(set) var rows: [Int: [UInt8]] = [:]

    /// Results without a locator have no row.
    ///
    /// - Parameter timeStamp: the partition's newest timeStamp after the part; rows written since are above it.
    init(_ results: [ChangeResult], of owner: SyncID, after timeStamp: TimeStamp) {
        self.owner = owner
        var changes: [RowLocator: [ChangeResult]] = [:]
        for result in results {
            if let locator = result.locator { changes[locator, default: []].append(result) }
        }
        for (knowledgeID, locators) in Dictionary(grouping: changes, by: \.key.knowledgeID) {
            var search = DeviceSearch(knowledgeID: knowledgeID, reached: timeStamp)
            for (locator, results) in locators {
                let row = Row(table: Int64(results[0].table), id: results[0].id)
                search.locators.append((locator.timeStamp, row, results.map(\.index)))
                search.newest = max(search.newest, locator.timeStamp)
            }
            searches.append(search)
        }
    }

    var isOver: Bool { searches.isEmpty }

    /// Whether a stream with these heads must contain all the rows; a rebuilt stream may be behind the results.
    func isCovered(by heads: OwnerHeads) -> Bool {
        searches.allSatisfy { $0.newest <= heads[$0.knowledgeID]?.head ?? .zero }
    }

    /// Runs one step in a snapshot of a stream that covers the rows.
    ///
    /// - Throws: ``StreamFailure/damaged(_:)`` when the stream lacks a row.
    mutating func step(in reader: FileReader) throws {
        guard !searches.isEmpty else { return }
        guard let owner = try reader.number(of: owner) else {
            throw StreamFailure.damaged("the owner of the rows of an outcome is missing")
        }
        var rowsLeft = Self.stepRows
        while rowsLeft > 0, var search = searches.popLast() {
            let range = Range(owner: owner, device: try reader.number(of: search.knowledgeID, of: owner))
            while rowsLeft > 0, let (timeStamp, row, changes) = search.locators.popLast() {
                rowsLeft -= 1
                if let json = try json(of: row, in: range, at: timeStamp, reader) {
                    for change in changes { rows[change] = json }
                } else {
                    search.moved[row, default: []] += changes
                }
            }
            if search.locators.isEmpty, try follow(&search, in: range, &rowsLeft, reader) { continue }
            searches.append(search)
        }
    }

    /// Scans the next rows of a device; returns false when another step has to continue.
    private mutating func follow(
        _ search: inout DeviceSearch, in range: Range, _ rowsLeft: inout Int, _ reader: FileReader
    ) throws -> Bool {
        if search.moved.isEmpty { return true }
        if rowsLeft == 0 { return false }
        var statement = try reader.connection.statement(
            """
            SELECT time_stamp, table_no, row_id, owner_no, device_no FROM stream \
            WHERE owner_no = ?1 AND device_no = ?2 AND time_stamp > ?3 ORDER BY time_stamp LIMIT ?4
            """)
        try statement.bind(integer: range.owner, at: 1)
        try statement.bind(integer: range.device, at: 2)
        try statement.bind(integer: search.reached.rawValue, at: 3)
        try statement.bind(integer: Int64(rowsLeft), at: 4)
        while try statement.step() {
            rowsLeft -= 1
            guard let timeStamp = TimeStamp(rawValue: try statement.integer(at: 0)), timeStamp > search.reached,
                let id = RowID(utf8: try statement.bytes(at: 2)),
                try statement.integer(at: 3) == range.owner, try statement.integer(at: 4) == range.device
            else { throw StreamFailure.damaged("rows of device \(range.device) are out of order") }
            search.reached = timeStamp
            let row = Row(table: try statement.integer(at: 1), id: id)
            guard let changes = search.moved.removeValue(forKey: row) else { continue }
            guard let json = try json(of: row, in: range, at: timeStamp, reader) else {
                throw StreamFailure.damaged(
                    "the row \(timeStamp) of owner \(range.owner) is found by a scan, but not by its key")
            }
            for change in changes { rows[change] = json }
            if search.moved.isEmpty { return true }
        }
        if rowsLeft > 0 { throw StreamFailure.damaged("the stream lacks a row of an outcome") }
        return false
    }

    /// The row at a timeStamp, verified to be the requested one; `nil` when there is none.
    private func json(
        of row: Row, in range: Range, at timeStamp: TimeStamp, _ reader: FileReader
    ) throws -> [UInt8]? {
        var statement = try reader.connection.statement(
            """
            SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum FROM stream \
            WHERE owner_no = ?1 AND device_no = ?2 AND time_stamp = ?3
            """)
        try statement.bind(integer: range.owner, at: 1)
        try statement.bind(integer: range.device, at: 2)
        try statement.bind(integer: timeStamp.rawValue, at: 3)
        guard try statement.step() else { return nil }
        _ = try FileRecords.checkRow(statement)
        try FileRecords.requireRow(
            statement, owner: range.owner, device: range.device, at: timeStamp, table: row.table, id: row.id)
        return try statement.bytes(at: 5)
    }
}

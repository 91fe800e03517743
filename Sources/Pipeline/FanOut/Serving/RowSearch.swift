import FanOutLink
import SQLite
import SyncModel

/// Finds the current versions of the rows of conflicts and refusals, starting at the locators in their results.
///
/// Rows are found in the order of the changes, some at a time, and read until the window's size is reached. A row that was
/// written since is among the later rows of its creating device. Their number is not bounded, so the search runs in steps,
/// between which the thread serves other reads.
struct RowSearch: Sendable {
    /// The maximum number of rows that one step reads.
    static let stepRows = 10_000
    /// The number of rows that are found before their JSON is read, at first and at most.
    private static let rowsAtATime = 32...1024

    private struct Row: Hashable {
        let table: Int64
        let id: RowID
    }

    /// A row to find, for the first change that shows it.
    private struct Target {
        let change: Int
        let row: Row
        let locator: RowLocator
    }

    /// The key of a row in the stream.
    private struct Position {
        let range: Range
        let timeStamp: TimeStamp
    }

    /// The search among the rows of one creating device.
    private struct DeviceSearch {
        let knowledgeID: KnowledgeID
        /// The rows not yet looked up at their locators.
        var targets: [Target] = []
        /// The rows that are no longer at their locators, with the changes that show them.
        var moved: [Row: Int] = [:]
        /// The timeStamp up to which later rows were scanned.
        var reached: TimeStamp
    }

    /// The numbers of an owner and a creating device in the file.
    private struct Range {
        let owner: Int64
        let device: Int64
    }

    /// The owner of the rows.
    let owner: SyncID
    private let timeStamp: TimeStamp
    private let first: Int
    private var bytesLeft: Int
    private var rowsAtATime = Self.rowsAtATime.lowerBound
    /// The rows that are still to be found, in the order of the changes.
    private var targets: ArraySlice<Target>
    /// The rows that are being found, in that order, and their searches.
    private var sought: ArraySlice<Target> = []
    private var searches: [DeviceSearch] = []
    /// Where rows were found, by the index of the change.
    private var positions: [Int: Position] = [:]
    /// The rows read so far, by the index of the change.
    private(set) var rows: [Int: [UInt8]] = [:]

    /// Results without a locator have no row.
    ///
    /// - Parameter timeStamp: the partition's newest timeStamp after the part; rows written since are above it.
    init(_ results: [ChangeResult], of owner: SyncID, after timeStamp: TimeStamp, in window: RowWindow) {
        self.owner = owner
        self.timeStamp = timeStamp
        first = window.from
        bytesLeft = window.maximumBytes
        var seen: Set<Row> = []
        var targets: [Target] = []
        for result in results {
            guard result.index < window.end else { break }
            guard let locator = result.locator else { continue }
            let row = Row(table: Int64(result.table), id: result.id)
            if seen.insert(row).inserted, result.index >= window.from {
                targets.append(Target(change: result.index, row: row, locator: locator))
            }
        }
        self.targets = targets[...]
    }

    var isOver: Bool { targets.isEmpty && sought.isEmpty }

    /// Whether a stream with these heads must contain all the rows; a rebuilt stream may be behind the results.
    func isCovered(by heads: OwnerHeads) -> Bool {
        targets.allSatisfy { $0.locator.timeStamp <= heads[$0.locator.knowledgeID]?.head ?? .zero }
    }

    /// Runs one step in a snapshot of a stream that covers the rows.
    ///
    /// - Throws: ``StreamFailure/damaged(_:)`` when the stream lacks a row.
    mutating func step(in reader: FileReader) throws {
        if isOver { return }
        guard let owner = try reader.number(of: owner) else {
            throw StreamFailure.damaged("the owner of the rows of an outcome is missing")
        }
        if sought.isEmpty { startNext() }
        var rowsLeft = Self.stepRows
        while rowsLeft > 0, var search = searches.popLast() {
            let range = Range(owner: owner, device: try reader.number(of: search.knowledgeID, of: owner))
            while rowsLeft > 0, let target = search.targets.popLast() {
                rowsLeft -= 1
                if try exists(target.row, in: range, at: target.locator.timeStamp, reader) {
                    positions[target.change] = Position(range: range, timeStamp: target.locator.timeStamp)
                } else {
                    search.moved[target.row] = target.change
                }
            }
            if search.targets.isEmpty, try follow(&search, in: range, &rowsLeft, reader) { continue }
            searches.append(search)
        }
        if searches.isEmpty { try readRows(reader) }
    }

    /// Begins to find the next rows.
    private mutating func startNext() {
        sought = targets.prefix(rowsAtATime)
        rowsAtATime = min(2 * rowsAtATime, Self.rowsAtATime.upperBound)
        targets = targets.dropFirst(sought.count)
        searches = Dictionary(grouping: sought, by: \.locator.knowledgeID).map { knowledgeID, targets in
            DeviceSearch(knowledgeID: knowledgeID, targets: targets, reached: timeStamp)
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
            guard let change = search.moved.removeValue(forKey: row) else { continue }
            positions[change] = Position(range: range, timeStamp: timeStamp)
            if search.moved.isEmpty { return true }
        }
        if rowsLeft > 0 { throw StreamFailure.damaged("the stream lacks a row of an outcome") }
        return false
    }

    /// Whether a row is at a timeStamp; its JSON, which may be large, is not read.
    private func exists(_ row: Row, in range: Range, at timeStamp: TimeStamp, _ reader: FileReader) throws -> Bool {
        var statement = try reader.connection.statement(
            """
            SELECT owner_no, device_no, time_stamp, table_no, row_id FROM stream \
            WHERE owner_no = ?1 AND device_no = ?2 AND time_stamp = ?3
            """)
        try statement.bind(integer: range.owner, at: 1)
        try statement.bind(integer: range.device, at: 2)
        try statement.bind(integer: timeStamp.rawValue, at: 3)
        guard try statement.step() else { return false }
        try FileRecords.requireRow(
            statement, owner: range.owner, device: range.device, at: timeStamp, table: row.table, id: row.id)
        return true
    }

    /// Reads the rows that were found, in the order of the changes, until the window's size is reached.
    private mutating func readRows(_ reader: FileReader) throws {
        while let target = sought.first {
            guard let position = positions.removeValue(forKey: target.change) else {
                throw StreamFailure.damaged("the stream lacks a row of an outcome")
            }
            guard let json = try json(of: target.row, at: position, reader) else {
                // It was written since an earlier step found it.
                var search = DeviceSearch(knowledgeID: target.locator.knowledgeID, reached: position.timeStamp)
                search.moved[target.row] = target.change
                searches = [search]
                return
            }
            guard target.change == first || json.count <= bytesLeft else {
                (targets, sought) = ([], [])
                return
            }
            bytesLeft -= json.count
            rows[target.change] = json
            sought.removeFirst()
        }
    }

    /// The row at a position, verified by its checksum to be the requested one; `nil` when there is none.
    private func json(of row: Row, at position: Position, _ reader: FileReader) throws -> [UInt8]? {
        let (range, timeStamp) = (position.range, position.timeStamp)
        var statement = try reader.connection.statement(
            """
            SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum, is_exact, created_at, columns FROM stream \
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

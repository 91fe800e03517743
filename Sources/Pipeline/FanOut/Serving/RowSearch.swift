import SQLite
import SyncModel

/// Looks for the rows that an answer shows for conflicts and refusals, from where their results say that they stood.
///
/// A row that has moved on since stands among the rows that its device's part of the stream got after the part, and nowhere
/// else. How many those are is up to the owner, so that a search is made in steps, between which others read.
struct RowSearch: Sendable {
    /// How many rows a step looks at, at most.
    static let stepRows = 10_000

    private struct Row: Hashable {
        let table: Int64
        let id: RowID
    }

    /// What is looked for among the rows that one device made.
    private struct DeviceSearch {
        let knowledgeID: KnowledgeID
        /// Where rows stood, and the changes that show them, by their positions; those not yet looked at.
        var places: [(timeStamp: TimeStamp, row: Row, changes: [Int])] = []
        /// Those that were not there any more.
        var moved: [Row: [Int]] = [:]
        /// Up to where those were looked for.
        var reached: TimeStamp
        /// The newest place.
        var newest = TimeStamp.zero
    }

    /// Where the rows of a device stand in the file.
    private struct Range {
        let owner: Int64
        let device: Int64
    }

    /// Whose rows they are.
    let owner: SyncID
    private var searches: [DeviceSearch] = []
    /// The rows found so far, by the changes' positions.
    private(set) var rows: [Int: [UInt8]] = [:]

    /// Begins with the results of an owner's part; those without a place show no row.
    ///
    /// - Parameter timeStamp: the partition's newest after the part, above which rows have moved.
    init(_ results: [ChangeResult], of owner: SyncID, after timeStamp: TimeStamp) {
        self.owner = owner
        var changes: [RowLocator: [ChangeResult]] = [:]
        for result in results {
            if let place = result.locator { changes[place, default: []].append(result) }
        }
        for (knowledgeID, places) in Dictionary(grouping: changes, by: \.key.knowledgeID) {
            var search = DeviceSearch(knowledgeID: knowledgeID, reached: timeStamp)
            for (place, results) in places {
                let row = Row(table: Int64(results[0].table), id: results[0].id)
                search.places.append((place.timeStamp, row, results.map(\.index)))
                search.newest = max(search.newest, place.timeStamp)
            }
            searches.append(search)
        }
    }

    /// Whether every row was found.
    var isOver: Bool { searches.isEmpty }

    /// Whether a stream with these heads must have all the rows: one that was made again may be behind the results told.
    func isCovered(by heads: OwnerHeads) -> Bool {
        searches.allSatisfy { $0.newest <= heads[$0.knowledgeID]?.head ?? .zero }
    }

    /// Goes on for one step, in one state of a stream that covers the rows.
    ///
    /// - Throws: ``StreamFailure/damaged(_:)`` where the stream lacks a row.
    mutating func step(in reader: FileReader) throws {
        guard !searches.isEmpty else { return }
        guard let owner = try reader.number(of: owner) else {
            throw StreamFailure.damaged("an owner whose rows an outcome shows is gone")
        }
        var rowsLeft = Self.stepRows
        while rowsLeft > 0, var search = searches.popLast() {
            let range = Range(owner: owner, device: try reader.number(of: search.knowledgeID, of: owner))
            while rowsLeft > 0, let (timeStamp, row, changes) = search.places.popLast() {
                rowsLeft -= 1
                if let json = try json(of: row, in: range, at: timeStamp, reader) {
                    for change in changes { rows[change] = json }
                } else {
                    search.moved[row, default: []] += changes
                }
            }
            if search.places.isEmpty, try follow(&search, in: range, &rowsLeft, reader) { continue }
            searches.append(search)
        }
    }

    /// Passes the rows of a device that are newer than those passed; false when a next step has to go on.
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
                throw StreamFailure.damaged("the row \(timeStamp) of owner \(range.owner) is found once, and then not")
            }
            for change in changes { rows[change] = json }
            if search.moved.isEmpty { return true }
        }
        if rowsLeft > 0 { throw StreamFailure.damaged("the stream lacks a row that an outcome shows") }
        return false
    }

    /// The row that stands at a timeStamp, once it is known to be the one meant; `nil` where none does.
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

import SQLite
import SyncModel

/// Looks for the rows that an answer shows for conflicts and refusals, from where their results say that they stood.
///
/// A row that has moved on since stands among the rows that its device's part of the stream got later, and nowhere else. How
/// many those are is up to the owner, so that a search is made in steps, between which others read.
struct RowSearch: Sendable {
    /// How many rows a step passes at most.
    static let stepRows = 10_000

    private struct Row: Hashable {
        let table: Int64
        let id: RowID
    }

    /// What is looked for in one device's part of the stream.
    private struct Part {
        let knowledgeID: KnowledgeID
        /// Where rows stood, and the changes that show them, by their positions.
        var places: [(timeStamp: TimeStamp, row: Row, changes: [Int])] = []
        /// Those that were not there any more.
        var moved: [Row: [Int]] = [:]
        /// Up to where those were looked for.
        var reached = TimeStamp.maximum
    }

    private let owner: SyncID
    private var parts: [Part] = []
    /// The rows found so far, by the changes' positions.
    private(set) var rows: [Int: [UInt8]] = [:]

    /// Begins with the results of an owner's part; those without a place show no row.
    init(_ results: [ChangeResult], of owner: SyncID) {
        self.owner = owner
        var changes: [RowPlace: [ChangeResult]] = [:]
        for result in results {
            if let place = result.place { changes[place, default: []].append(result) }
        }
        for (knowledgeID, places) in Dictionary(grouping: changes, by: \.key.knowledgeID) {
            var part = Part(knowledgeID: knowledgeID)
            for (place, results) in places {
                let row = Row(table: Int64(results[0].table), id: results[0].id)
                part.places.append((place.timeStamp, row, results.map(\.index)))
            }
            parts.append(part)
        }
    }

    /// Whether every row was found.
    var isOver: Bool { parts.isEmpty }

    /// Goes on for one step, in one state of the stream.
    ///
    /// - Throws: ``StreamFailure/damaged(_:)`` where the stream lacks a row.
    mutating func step(in reader: StreamReader) throws {
        guard !parts.isEmpty else { return }
        guard let owner = try reader.number(of: owner) else {
            throw StreamFailure.damaged("an owner whose rows an outcome shows is gone")
        }
        var rowsLeft = Self.stepRows
        while rowsLeft > 0, var part = parts.popLast() {
            let device = try reader.number(of: part.knowledgeID, of: owner)
            for (timeStamp, row, changes) in part.places {
                if let json = try json(of: row, owner, device, at: timeStamp, reader) {
                    for change in changes { rows[change] = json }
                } else {
                    part.moved[row, default: []] += changes
                    part.reached = min(part.reached, timeStamp)
                }
            }
            part.places = []
            if try !follow(&part, owner, device, &rowsLeft, reader) { parts.append(part) }
        }
    }

    /// Passes the rows of a device that are newer than those passed; false when a next step has to go on.
    private mutating func follow(
        _ part: inout Part, _ owner: Int64, _ device: Int64, _ rowsLeft: inout Int, _ reader: StreamReader
    ) throws -> Bool {
        if part.moved.isEmpty { return true }
        var statement = try reader.connection.statement(
            """
            SELECT time_stamp, table_no, row_id, owner_no, device_no FROM stream \
            WHERE owner_no = ?1 AND device_no = ?2 AND time_stamp > ?3 ORDER BY time_stamp LIMIT ?4
            """)
        try statement.bind(integer: owner, at: 1)
        try statement.bind(integer: device, at: 2)
        try statement.bind(integer: part.reached.rawValue, at: 3)
        try statement.bind(integer: Int64(rowsLeft), at: 4)
        while try statement.step() {
            rowsLeft -= 1
            guard let timeStamp = TimeStamp(rawValue: try statement.integer(at: 0)), timeStamp > part.reached,
                let id = RowID(utf8: try statement.bytes(at: 2)),
                try statement.integer(at: 3) == owner, try statement.integer(at: 4) == device
            else { throw StreamFailure.damaged("rows of device \(device) are out of order") }
            part.reached = timeStamp
            let row = Row(table: try statement.integer(at: 1), id: id)
            guard let changes = part.moved.removeValue(forKey: row) else { continue }
            guard let json = try json(of: row, owner, device, at: timeStamp, reader) else {
                throw StreamFailure.damaged("the row \(timeStamp) of owner \(owner) is found once, and then not")
            }
            for change in changes { rows[change] = json }
            if part.moved.isEmpty { return true }
        }
        if rowsLeft > 0 { throw StreamFailure.damaged("the stream lacks a row that an outcome shows") }
        return false
    }

    /// The row that stands at a timeStamp, once it is known to be the one meant; `nil` where none does.
    private func json(
        of row: Row, _ owner: Int64, _ device: Int64, at timeStamp: TimeStamp, _ reader: StreamReader
    ) throws -> [UInt8]? {
        var statement = try reader.connection.statement(
            """
            SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum FROM stream \
            WHERE owner_no = ?1 AND device_no = ?2 AND time_stamp = ?3
            """)
        try statement.bind(integer: owner, at: 1)
        try statement.bind(integer: device, at: 2)
        try statement.bind(integer: timeStamp.rawValue, at: 3)
        guard try statement.step() else { return nil }
        _ = try StreamRecords.checkRow(statement)
        let isMeant = try statement.withBytes(at: 4) { row.id.hasBytes($0) }
        // A search in a damaged tree may find another row, of another owner even (I9).
        guard isMeant, try statement.integer(at: 0) == owner, try statement.integer(at: 1) == device,
            try statement.integer(at: 2) == timeStamp.rawValue, try statement.integer(at: 3) == row.table
        else { throw StreamFailure.damaged("another row stands at \(timeStamp) of owner \(owner)") }
        return try statement.bytes(at: 5)
    }
}

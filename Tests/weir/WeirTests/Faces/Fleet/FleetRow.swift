import Foundation

/// The tables of a fleet, parents first.
enum FleetTable: String, CaseIterable {
    case note
    case comment

    var name: String { rawValue }
    var columns: [String] { self == .note ? ["tag", "title"] : ["tag", "title", "note_id"] }
}

/// A row as a user sees it.
struct FleetRow: Equatable {
    let table: FleetTable
    /// What the app knows it by.
    let handle: String
    /// What its comments name it by.
    let key: String
    let tag: String
    let title: String
    /// The key of the note that it is on; empty for a note.
    let note: String

    /// - Parameter key: `nil`: the handle.
    init(_ table: FleetTable, handle: String, key: String? = nil, _ row: JSON) {
        self.table = table
        self.handle = handle
        self.key = key ?? handle
        tag = row["tag"].string ?? ""
        title = row["title"].string ?? ""
        note = row["note_id"].string ?? ""
    }

    /// A row with its id.
    init(_ table: FleetTable, _ row: JSON) { self.init(table, handle: row["id"].string ?? "", row) }
}

/// A row to be made: everything follows from its number, also the time in its id, by which trackers know rows.
struct NewRow {
    /// The note that nobody deletes.
    static let home = NewRow(number: 0)

    private static let firstMillisecond = 1_767_225_600_000  // 2026-01-01T00:00:00Z

    let number: Int

    var tag: String { "r\(number)" }

    /// A UUID of version 7.
    var id: String {
        let time = String(Self.firstMillisecond + number, radix: 16)
        let digits = String(repeating: "0", count: 12 - time.count) + time
        let node = String(repeating: "0", count: 12 - String(number).count) + String(number)
        return "\(digits.prefix(8))-\(digits.dropFirst(8))-7000-8000-\(node)"
    }

    var createdOn: String {
        let seconds = ISO8601DateFormatter().string(
            from: Date(timeIntervalSince1970: Double((Self.firstMillisecond + number) / 1000)))
        let milliseconds = String((Self.firstMillisecond + number) % 1000)
        return seconds.dropLast() + "." + String(repeating: "0", count: 3 - milliseconds.count) + milliseconds + "000Z"
    }

    static func tag(createdOn: String) -> String {
        // A number below 1000 is the fraction; a fleet makes fewer rows.
        "r\(Int(createdOn.dropLast().suffix(6)).map { $0 / 1000 } ?? -1)"
    }
}

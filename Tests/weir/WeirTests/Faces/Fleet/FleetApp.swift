import Foundation

/// An app of one protocol with one table, `note`, as a fleet uses it.
///
/// Its rows have a `tag` that never changes, by which all apps know a row, and a `title` that users edit.
protocol FleetApp {
    /// The rows that the user sees.
    func rows() throws -> [FleetRow]
    func create(_ row: NewRow, _ title: String) throws
    func edit(_ row: FleetRow, _ title: String) throws
    func delete(_ row: FleetRow) throws
    func sync() async throws
    var hasPending: Bool { get throws }
    /// The tags of rows whose edits were replaced by the server's since the last call: the app tells its user.
    func takeConflicts() throws -> Set<String>
}

/// A row as a user sees it.
struct FleetRow: Equatable {
    /// What the app knows it by.
    let handle: String
    let tag: String
    let title: String
}

/// A row to be made: everything follows from its number, also the time in its id, by which trackers know rows.
struct NewRow {
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

/// The protocols of a fleet.
enum FleetProtocol: String, CaseIterable {
    case contract
    case crud
    case rest
    case tracker
    case sqliteNow

    /// Opens the file of a device, as when its app is started.
    func open(_ name: String, _ client: DeviceClient, in folder: TestFolder) throws -> any FleetApp {
        var client = client
        if self != .contract { client.headers["X-Device-Id"] = name }
        switch self {
        case .contract:
            return ContractFleetApp(name, try ContractApp("\(folder.path)/\(name).db", client, knowledgeID: name))
        case .crud:
            let device = try CrudDevice(
                name, port: client.port, in: folder,
                [CrudDevice.Collection(name: "note", columns: ["tag", "title"])])
            device.client = client
            device.clock = TrackerDevice.now
            return CrudFleetApp(device: device)
        case .rest:
            let device = try RestDevice(name, port: client.port, in: folder, ["note": ["tag", "title"]])
            device.client = client
            // As docs/faces/rest.md advises.
            device.comparesTs = true
            return RestFleetApp(device: device)
        case .tracker:
            let device = try TrackerDevice(
                name, port: client.port, in: folder,
                [TrackerDevice.Collection(name: "note", columns: ["tag", "title"])])
            device.client = client
            return TrackerFleetApp(device: device)
        case .sqliteNow: return try SQLiteNowFleetApp(name, client, in: folder)
        }
    }

    /// Whether the server compares times of edits, which the app sends, and not versions.
    var sendsTimes: Bool { self == .contract || self == .crud || self == .tracker }

    /// The microseconds within which the server takes times as equal.
    var resolution: Int { self == .crud ? 1000 : 1 }
}

private struct ContractFleetApp: FleetApp {
    private let app: ContractApp

    init(_ name: String, _ app: ContractApp) { self.app = app }

    func rows() throws -> [FleetRow] {
        try app.rows().map {
            FleetRow(handle: $0["id"].string ?? "", tag: $0["tag"].string ?? "", title: $0["title"].string ?? "")
        }
    }

    func create(_ row: NewRow, _ title: String) throws { try app.insert(row.id, row.tag, title) }
    func edit(_ row: FleetRow, _ title: String) throws { try app.update(row.handle, title) }
    func delete(_ row: FleetRow) throws { try app.delete(row.handle) }
    func sync() async throws { try await app.sync() }
    var hasPending: Bool { get throws { try app.hasPending } }

    func takeConflicts() throws -> Set<String> {
        defer { app.conflicts = [] }
        return Set(try app.conflicts.compactMap { try app.tag(of: $0) })
    }
}

private struct CrudFleetApp: FleetApp {
    let device: CrudDevice

    func rows() throws -> [FleetRow] {
        try device.shown("note").map {
            FleetRow(handle: $0["id"].string ?? "", tag: $0["tag"].string ?? "", title: $0["title"].string ?? "")
        }
    }

    func create(_ row: NewRow, _ title: String) throws {
        try device.keep("note", row.id, ["tag": JSON(row.tag), "title": JSON(title)])
    }
    func edit(_ row: FleetRow, _ title: String) throws {
        try device.edit("note", row.handle, ["title": JSON(title)])
    }
    func delete(_ row: FleetRow) throws { try device.hide("note", row.handle) }

    func sync() async throws {
        try await device.sync()
        _ = try await device.get("note")
        guard device.refused.isEmpty else {
            throw DeviceClient.Failure(description: "\(device.refused)", status: 422)
        }
    }

    var hasPending: Bool { get throws { try !device.pending().isEmpty } }

    func takeConflicts() throws -> Set<String> {
        defer { device.conflicts = [] }
        return Set(try device.conflicts.compactMap { try device.record("note", $0)?["tag"].string })
    }
}

private struct RestFleetApp: FleetApp {
    let device: RestDevice

    func rows() throws -> [FleetRow] {
        try device.records("note").filter { $0["Deleted"].bool == false }.map {
            FleetRow(handle: $0["id"].string ?? "", tag: $0["tag"].string ?? "", title: $0["title"].string ?? "")
        }
    }

    func create(_ row: NewRow, _ title: String) throws {
        try device.insert("note", row.id, ["tag": row.tag, "title": title])
    }
    func edit(_ row: FleetRow, _ title: String) throws { try device.update("note", row.handle, ["title": title]) }
    func delete(_ row: FleetRow) throws { try device.delete("note", row.handle) }
    func sync() async throws { try await device.sync() }
    var hasPending: Bool { get throws { try device.hasDirtyRows("note") } }

    func takeConflicts() throws -> Set<String> {
        defer { device.conflicts = [] }
        return Set(try device.conflicts.compactMap { try device.row("note", $0)?["tag"] ?? nil })
    }
}

private struct TrackerFleetApp: FleetApp {
    let device: TrackerDevice

    func rows() throws -> [FleetRow] {
        try device.documents("note").map {
            FleetRow(handle: $0["tag"].string ?? "", tag: $0["tag"].string ?? "", title: $0["title"].string ?? "")
        }
    }

    func create(_ row: NewRow, _ title: String) throws {
        try device.create("note", ["tag": row.tag, "title": title], at: row.createdOn)
    }
    func edit(_ row: FleetRow, _ title: String) throws {
        try device.edit("note", where: "tag", is: row.handle, ["title": title])
    }
    func delete(_ row: FleetRow) throws { try device.delete("note", where: "tag", is: row.handle) }
    func sync() async throws { try await device.sync() }
    var hasPending: Bool { get throws { try device.hasDirtyDocuments } }

    func takeConflicts() throws -> Set<String> {
        defer { device.overwritten = [] }
        return Set(device.overwritten.map { NewRow.tag(createdOn: $0) })
    }
}

private final class SQLiteNowFleetApp: FleetApp {
    private let client: SQLiteNowClient
    private var conflicts: Set<String> = []

    init(_ name: String, _ client: DeviceClient, in folder: TestFolder) throws {
        let path = "\(folder.path)/\(name).db"
        try AppDatabase(path: path).run("CREATE TABLE IF NOT EXISTS note(id TEXT PRIMARY KEY, tag, title)")
        self.client = try SQLiteNowClient(
            path, port: client.port, syncID: "abc", source: name,
            tables: [SQLiteNowClient.Table(name: "note", columns: ["tag", "title"])], limit: 5, uploadLimit: 4)
        self.client.client = client
        self.client.resolve = { [unowned self] server, _ in
            conflicts.insert(server["tag"].string ?? "")
            return nil
        }
    }

    func rows() throws -> [FleetRow] {
        try client.rows(of: "note").map {
            FleetRow(handle: $0["id"].string ?? "", tag: $0["tag"].string ?? "", title: $0["title"].string ?? "")
        }
    }

    func create(_ row: NewRow, _ title: String) throws {
        try client.database.run(
            "INSERT INTO note(id, tag, title) VALUES (?1, ?2, ?3)", [JSON(row.id), JSON(row.tag), JSON(title)])
    }
    func edit(_ row: FleetRow, _ title: String) throws {
        try client.database.run("UPDATE note SET title = ?2 WHERE id = ?1", [JSON(row.handle), JSON(title)])
    }
    func delete(_ row: FleetRow) throws {
        try client.database.run("DELETE FROM note WHERE id = ?1", [JSON(row.handle)])
    }
    func sync() async throws {
        try await client.sync()
        guard client.errors.isEmpty else { throw DeviceClient.Failure(description: "\(client.errors)", status: 200) }
    }
    var hasPending: Bool { get throws { try client.hasPending } }

    func takeConflicts() throws -> Set<String> {
        defer { conflicts = [] }
        return conflicts
    }
}

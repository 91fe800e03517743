/// An app of one protocol with notes and their comments, as a fleet uses it.
///
/// Rows have a `tag` that never changes, by which all apps know a row, and a `title` that users edit.
protocol FleetApp {
    /// The rows that the user sees.
    func rows() throws -> [FleetRow]
    /// - Parameter note: what the new row is a comment on; `nil` for a note.
    func create(_ row: NewRow, _ title: String, on note: FleetRow?) throws
    func edit(_ row: FleetRow, _ title: String) throws
    func delete(_ row: FleetRow) throws
    func sync() async throws
    var hasPending: Bool { get throws }
    /// The tags of rows whose edits were replaced by the server's since the last call: the app tells its user.
    func takeConflicts() throws -> Set<String>
}

/// An app whose protocol says what becomes of the comments on a note that is deleted.
protocol ReassigningFleetApp: FleetApp {
    /// - Parameter target: the id of the note that comments go to.
    func delete(_ note: FleetRow, commentsTo target: String) throws
    /// The ids of the notes that, as the server has answered since the last call, are deleted and have no comments.
    func takeReassigned() -> [String]
}

/// The protocols of a fleet.
enum FleetProtocol: String, CaseIterable {
    case contract
    case crud
    case rest
    case tracker
    case sqliteNow

    /// Opens the file of a device, as when its app is started.
    ///
    /// - Parameter isLiteral: whether the app follows its document alone, where docs/faces/ advises more or leaves a choice.
    func open(_ name: String, _ client: DeviceClient, in folder: TestFolder, isLiteral: Bool) throws -> any FleetApp {
        var client = client
        if self != .contract { client.headers["X-Device-Id"] = name }
        switch self {
        case .contract:
            let tables = FleetTable.allCases.map { ContractApp.Table(name: $0.name, columns: $0.columns) }
            return ContractFleetApp(
                app: try ContractApp("\(folder.path)/\(name).db", client, knowledgeID: name, tables))
        case .crud:
            let device = try CrudDevice(
                name, port: client.port, in: folder,
                FleetTable.allCases.map {
                    CrudDevice.Collection(
                        name: $0.name, columns: $0.columns, childColumn: $0 == .note ? "note_id" : nil)
                })
            device.client = client
            device.clock = TrackerDevice.now
            return CrudFleetApp(device: device)
        case .rest:
            let columns = Dictionary(uniqueKeysWithValues: FleetTable.allCases.map { ($0.name, $0.columns) })
            let device = try RestDevice(name, port: client.port, in: folder, columns)
            device.client = client
            device.comparesTs = !isLiteral
            return RestFleetApp(device: device)
        case .tracker:
            let device = try TrackerDevice(
                name, port: client.port, in: folder,
                FleetTable.allCases.map {
                    TrackerDevice.Collection(
                        name: $0.name, columns: $0.columns, reference: $0 == .comment ? "note_id" : nil)
                })
            device.client = client
            device.countsOwnRows = isLiteral
            return TrackerFleetApp(device: device)
        case .sqliteNow: return try SQLiteNowFleetApp(name, client, in: folder, uploadsOnce: isLiteral)
        }
    }

    /// Whether the server compares times of edits, which the app sends, and not versions.
    var sendsTimes: Bool { self == .contract || self == .crud || self == .tracker }

    /// The microseconds within which the server takes times as equal.
    var resolution: Int { self == .crud ? 1000 : 1 }
}

extension NewRow {
    /// The columns of the new row.
    fileprivate func values(_ title: String, on note: FleetRow?) -> [String: String] {
        var values = ["tag": tag, "title": title]
        values["note_id"] = note?.key
        return values
    }
}

extension FleetRow? {
    /// The table of a new row that is a comment on this note, or a note.
    fileprivate var table: String { (self == nil ? FleetTable.note : .comment).name }
}

private struct ContractFleetApp: FleetApp {
    let app: ContractApp

    func rows() throws -> [FleetRow] {
        try FleetTable.allCases.flatMap { table in try app.rows(table.name).map { FleetRow(table, $0) } }
    }

    func create(_ row: NewRow, _ title: String, on note: FleetRow?) throws {
        try app.insert(note.table, row.id, row.values(title, on: note))
    }
    func edit(_ row: FleetRow, _ title: String) throws { try app.update(row.table.name, row.handle, title: title) }
    func delete(_ row: FleetRow) throws { try app.delete(row.table.name, row.handle) }
    func sync() async throws { try await app.sync() }
    var hasPending: Bool { get throws { try app.hasPending } }

    func takeConflicts() throws -> Set<String> {
        defer { app.conflicts = [] }
        return Set(try app.conflicts.compactMap { try app.tag(of: $0) })
    }
}

private struct CrudFleetApp: ReassigningFleetApp {
    let device: CrudDevice

    func rows() throws -> [FleetRow] {
        try FleetTable.allCases.flatMap { table in try device.shown(table.name).map { FleetRow(table, $0) } }
    }

    func create(_ row: NewRow, _ title: String, on note: FleetRow?) throws {
        try device.keep(note.table, row.id, JSON(row.values(title, on: note)))
    }
    func edit(_ row: FleetRow, _ title: String) throws {
        try device.edit(row.table.name, row.handle, ["title": JSON(title)])
    }
    func delete(_ row: FleetRow) throws { try device.hide(row.table.name, row.handle) }
    func delete(_ note: FleetRow, commentsTo target: String) throws {
        try device.hide(note.table.name, note.handle, reassign: target)
    }

    /// The user names another note where the one that comments should go to was deleted meanwhile.
    func sync() async throws {
        try await device.sync()
        let refused = device.refused
        device.refused = []
        for request in refused where request.hasPrefix("422 note/") {
            try device.hide("note", String(request.dropFirst(9)), reassign: NewRow.home.id)
        }
        if !refused.isEmpty { try await device.sync() }
        for table in FleetTable.allCases { _ = try await device.get(table.name) }
        guard device.refused.isEmpty else {
            throw DeviceClient.Failure(description: "\(device.refused)", status: 422)
        }
    }

    var hasPending: Bool { get throws { try !device.pending().isEmpty } }

    func takeConflicts() throws -> Set<String> {
        defer { device.conflicts = [] }
        return Set(
            try device.conflicts.compactMap { id in
                try FleetTable.allCases.compactMap { try device.record($0.name, id)?["tag"].string }.first
            })
    }

    func takeReassigned() -> [String] {
        defer { device.reassigned = [] }
        return device.reassigned
    }
}

private struct RestFleetApp: FleetApp {
    let device: RestDevice

    func rows() throws -> [FleetRow] {
        try FleetTable.allCases.flatMap { table in
            try device.records(table.name).filter { $0["Deleted"].bool == false }.map { FleetRow(table, $0) }
        }
    }

    func create(_ row: NewRow, _ title: String, on note: FleetRow?) throws {
        try device.insert(note.table, row.id, row.values(title, on: note))
    }
    func edit(_ row: FleetRow, _ title: String) throws {
        try device.update(row.table.name, row.handle, ["title": title])
    }
    func delete(_ row: FleetRow) throws { try device.delete(row.table.name, row.handle) }
    func sync() async throws { try await device.sync() }
    var hasPending: Bool { get throws { try FleetTable.allCases.contains { try device.hasDirtyRows($0.name) } } }

    func takeConflicts() throws -> Set<String> {
        defer { device.conflicts = [] }
        return Set(
            try device.conflicts.compactMap { id in
                try FleetTable.allCases.compactMap { try device.row($0.name, id)?["tag"] ?? nil }.first
            })
    }
}

private struct TrackerFleetApp: FleetApp {
    let device: TrackerDevice

    func rows() throws -> [FleetRow] {
        try FleetTable.allCases.flatMap { table in
            try device.documents(table.name).map { row in
                let tag = row["tag"].string ?? ""
                let key = try device.reference(to: table.name, where: "tag", is: tag)
                return FleetRow(table, handle: tag, key: key, row)
            }
        }
    }

    func create(_ row: NewRow, _ title: String, on note: FleetRow?) throws {
        try device.create(note.table, row.values(title, on: note), at: row.createdOn)
    }
    func edit(_ row: FleetRow, _ title: String) throws {
        try device.edit(row.table.name, where: "tag", is: row.handle, ["title": title])
    }
    func delete(_ row: FleetRow) throws { try device.delete(row.table.name, where: "tag", is: row.handle) }
    func sync() async throws { try await device.sync() }
    var hasPending: Bool { get throws { try device.hasDirtyDocuments } }

    func takeConflicts() throws -> Set<String> {
        defer { device.overwritten = [] }
        return Set(device.overwritten.map { NewRow.tag(createdOn: $0) })
    }
}

private final class SQLiteNowFleetApp: FleetApp {
    private let client: SQLiteNowClient
    /// Whether a sync has one upload, so that a resolved conflict is downloaded before it is sent again.
    private let uploadsOnce: Bool
    private var conflicts: Set<String> = []

    init(_ name: String, _ client: DeviceClient, in folder: TestFolder, uploadsOnce: Bool) throws {
        self.uploadsOnce = uploadsOnce
        let path = "\(folder.path)/\(name).db"
        for table in FleetTable.allCases {
            let columns = table.columns.joined(separator: ", ")
            try AppDatabase(path: path).run("CREATE TABLE IF NOT EXISTS \(table.name)(id TEXT PRIMARY KEY, \(columns))")
        }
        self.client = try SQLiteNowClient(
            path, port: client.port, syncID: "abc", source: name,
            tables: FleetTable.allCases.map { SQLiteNowClient.Table(name: $0.name, columns: $0.columns) }, limit: 5,
            uploadLimit: 4)
        self.client.client = client
        self.client.resolve = { [unowned self] server, _ in
            conflicts.insert(server["tag"].string ?? "")
            return nil
        }
    }

    func rows() throws -> [FleetRow] {
        try FleetTable.allCases.flatMap { table in try client.rows(of: table.name).map { FleetRow(table, $0) } }
    }

    func create(_ row: NewRow, _ title: String, on note: FleetRow?) throws {
        let values = row.values(title, on: note)
        let places = values.keys.indices.enumerated().map { ", ?\($0.offset + 2)" }.joined()
        try client.database.run(
            "INSERT INTO \(note.table)(id, \(values.keys.joined(separator: ", "))) VALUES (?1\(places))",
            [JSON(row.id)] + values.values.map { JSON($0) })
    }
    func edit(_ row: FleetRow, _ title: String) throws {
        try client.database.run(
            "UPDATE \(row.table.name) SET title = ?2 WHERE id = ?1", [JSON(row.handle), JSON(title)])
    }
    func delete(_ row: FleetRow) throws {
        try client.database.run("DELETE FROM \(row.table.name) WHERE id = ?1", [JSON(row.handle)])
    }
    func sync() async throws {
        guard uploadsOnce else { return try await client.sync() }
        try await client.upload()
        try await client.download()
        let problems = client.errors + client.skipped
        guard problems.isEmpty else { throw DeviceClient.Failure(description: "\(problems)", status: 200) }
    }
    var hasPending: Bool { get throws { try client.hasPending } }

    func takeConflicts() throws -> Set<String> {
        defer { conflicts = [] }
        return conflicts
    }
}

import DeviceRegistry
import SQLite
import SyncModel
import SyncWire

/// The device registry in an SQLite file of its own: that of `weir run`.
///
/// A power failure may lose its newest transactions. The file may be removed while no process uses it: devices are registered
/// again as they are seen; only the names that owners gave them are lost.
package final class SQLiteDeviceRegistry: DeviceRegistry {
    /// "weid" in ASCII.
    private static let applicationID: Int32 = 0x7765_6964
    /// Format 1 had no positions.
    private static let format: Int32 = 2

    private let path: String
    /// Reads are rare and short, so they use it, too.
    private let writer: DatabaseWriter
    private let maximumPerCaller: Int

    private init(path: String, writer: DatabaseWriter, maximumPerCaller: Int) {
        self.path = path
        self.writer = writer
        self.maximumPerCaller = maximumPerCaller
    }

    /// Opens the file and creates it if it is missing; its folder must exist.
    ///
    /// - Parameter maximumPerCaller: the devices of a caller that are kept; those not seen for longest are forgotten.
    package static func open(
        path: String, maximumPerCaller: Int
    ) async throws(DeviceRegistryError) -> SQLiteDeviceRegistry {
        do {
            let writer = try await DatabaseWriter.open(path: path, options: ConnectionOptions(cacheSize: 2 << 20))
            let registry = SQLiteDeviceRegistry(path: path, writer: writer, maximumPerCaller: maximumPerCaller)
            do {
                try await writer.write { try prepare($0) }
            } catch {
                await registry.close()
                throw error
            }
            return registry
        } catch {
            throw Self.failure(error, path)
        }
    }

    private static func prepare(_ connection: Connection) throws {
        let application = try connection.integer("PRAGMA application_id")
        let found = try connection.userVersion()
        if application == 0, found == 0, try connection.integer("SELECT count(*) FROM sqlite_schema") == 0 {
            try connection.execute(table)
            try connection.execute(positionsTable)
            try connection.execute("PRAGMA application_id = \(applicationID)")
            try connection.setUserVersion(format)
            return
        }
        if application == Int64(applicationID), found == 1 {
            try connection.execute(positionsTable)
            return try connection.setUserVersion(format)
        }
        guard application == Int64(applicationID), found == format else {
            throw DeviceRegistryError(
                "\(connection.path) is no device registry that this version knows: move it away, and a new one is made")
        }
    }

    private static let table = """
        CREATE TABLE device_registry (
            caller TEXT NOT NULL,
            knowledge_id TEXT NOT NULL,
            given_name TEXT,
            reported_name TEXT,
            platform TEXT,
            app_version TEXT,
            first_seen INTEGER NOT NULL,
            last_seen INTEGER NOT NULL,
            last_upload INTEGER,
            knowledge BLOB,
            PRIMARY KEY (caller, knowledge_id)
        ) STRICT, WITHOUT ROWID
        """

    private static let positionsTable = """
        CREATE TABLE device_positions (
            caller TEXT NOT NULL,
            knowledge_id TEXT NOT NULL,
            name TEXT NOT NULL,
            value INTEGER NOT NULL,
            PRIMARY KEY (caller, knowledge_id, name)
        ) STRICT, WITHOUT ROWID
        """

    /// It is in the folder of one process.
    package var isShared: Bool { false }

    package func record(_ sightings: [DeviceSighting]) async throws(DeviceRegistryError) {
        var rest = sightings[...]
        while !rest.isEmpty {
            // Requests that read the registry wait for one transaction.
            let batch = rest.prefix(Self.batchSize)
            rest = rest.dropFirst(batch.count)
            try await write { [maximumPerCaller] connection in
                for sighting in batch { try Self.upsert(sighting, connection) }
                for caller in Set(batch.map(\.device.caller)) {
                    try Self.forgetOldest(of: caller, above: maximumPerCaller, connection)
                }
            }
        }
    }

    /// Sightings of one transaction.
    private static let batchSize = 1000

    private static func upsert(_ sighting: DeviceSighting, _ connection: Connection) throws {
        var statement = try connection.statement(
            """
            INSERT INTO device_registry (caller, knowledge_id, reported_name, platform, app_version, first_seen, last_seen,
                last_upload, knowledge)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
            ON CONFLICT (caller, knowledge_id) DO UPDATE SET
                reported_name = coalesce(excluded.reported_name, reported_name),
                platform = coalesce(excluded.platform, platform),
                app_version = coalesce(excluded.app_version, app_version),
                first_seen = min(first_seen, excluded.first_seen),
                last_seen = max(last_seen, excluded.last_seen),
                last_upload = coalesce(max(last_upload, excluded.last_upload), last_upload, excluded.last_upload),
                knowledge = CASE WHEN excluded.last_seen >= last_seen THEN coalesce(excluded.knowledge, knowledge)
                    ELSE coalesce(knowledge, excluded.knowledge) END
            """)
        try statement.bind(text: sighting.device.caller.text, at: 1)
        try statement.bind(text: sighting.device.knowledgeID.text, at: 2)
        let texts = [sighting.description.name, sighting.description.platform, sighting.description.appVersion]
        for (index, text) in zip(3..., texts) { try statement.bind(text, at: index) }
        try statement.bind(integer: sighting.firstSeen, at: 6)
        try statement.bind(integer: sighting.lastSeen, at: 7)
        if let time = sighting.lastUpload {
            try statement.bind(integer: time, at: 8)
        } else {
            try statement.bindNull(at: 8)
        }
        if let knowledge = sighting.knowledge {
            try statement.bind(blob: DevicePositions(knowledge).encode(), at: 9)
        } else {
            try statement.bindNull(at: 9)
        }
        try statement.run()
    }

    private static func forgetOldest(of caller: SyncID, above maximum: Int, _ connection: Connection) throws {
        var count = try connection.statement("SELECT count(*) FROM device_registry WHERE caller = ?1")
        try count.bind(text: caller.text, at: 1)
        guard try count.step() else { return }
        let excess = try count.integer(at: 0) - Int64(maximum)
        count.reset()
        guard excess > 0 else { return }
        var positions = try connection.statement(
            """
            DELETE FROM device_positions WHERE caller = ?1 AND knowledge_id IN (
                SELECT knowledge_id FROM device_registry WHERE caller = ?1 ORDER BY last_seen, knowledge_id LIMIT ?2)
            """)
        try positions.bind(text: caller.text, at: 1)
        try positions.bind(integer: excess, at: 2)
        try positions.run()
        var statement = try connection.statement(
            """
            DELETE FROM device_registry WHERE caller = ?1 AND knowledge_id IN (
                SELECT knowledge_id FROM device_registry WHERE caller = ?1 ORDER BY last_seen, knowledge_id LIMIT ?2)
            """)
        try statement.bind(text: caller.text, at: 1)
        try statement.bind(integer: excess, at: 2)
        try statement.run()
    }

    package func devices(
        of caller: SyncID, after last: KnowledgeID?, limit: Int
    ) async throws(DeviceRegistryError) -> [RegisteredDevice] {
        try await write { connection in
            var statement = try connection.statement(
                """
                SELECT knowledge_id, given_name, reported_name, platform, app_version, first_seen, last_seen, last_upload,
                    knowledge
                FROM device_registry WHERE caller = ?1 AND knowledge_id > ?2 ORDER BY knowledge_id LIMIT ?3
                """)
            try statement.bind(text: caller.text, at: 1)
            try statement.bind(text: last?.text ?? "", at: 2)
            try statement.bind(integer: Int64(limit), at: 3)
            var devices: [RegisteredDevice] = []
            while try statement.step() { devices.append(try statement.device()) }
            return devices
        }
    }

    package func device(_ device: Device) async throws(DeviceRegistryError) -> RegisteredDevice? {
        try await write { connection in
            var statement = try connection.statement(
                """
                SELECT knowledge_id, given_name, reported_name, platform, app_version, first_seen, last_seen, last_upload,
                    knowledge
                FROM device_registry WHERE caller = ?1 AND knowledge_id = ?2
                """)
            try statement.bind(text: device.caller.text, at: 1)
            try statement.bind(text: device.knowledgeID.text, at: 2)
            return try statement.step() ? try statement.device() : nil
        }
    }

    package func rename(_ device: Device, to name: String?) async throws(DeviceRegistryError) -> Bool {
        try await write { connection in
            var statement = try connection.statement(
                """
                UPDATE device_registry SET given_name = ?3 WHERE caller = ?1 AND knowledge_id = ?2 RETURNING 1
                """)
            try statement.bind(text: device.caller.text, at: 1)
            try statement.bind(text: device.knowledgeID.text, at: 2)
            try statement.bind(name, at: 3)
            guard try statement.step() else { return false }
            // Completes the write.
            try statement.run()
            return true
        }
    }

    package func positions(of device: Device) async throws(DeviceRegistryError) -> [String: Int64] {
        try await write { connection in
            var statement = try connection.statement(
                "SELECT name, value FROM device_positions WHERE caller = ?1 AND knowledge_id = ?2")
            try statement.bind(text: device.caller.text, at: 1)
            try statement.bind(text: device.knowledgeID.text, at: 2)
            var positions: [String: Int64] = [:]
            while try statement.step() { positions[try statement.text(at: 0)] = try statement.integer(at: 1) }
            return positions
        }
    }

    package func raise(_ positions: [DevicePosition]) async throws(DeviceRegistryError) {
        try await write { connection in
            for position in positions {
                var statement = try connection.statement(
                    """
                    INSERT INTO device_positions (caller, knowledge_id, name, value) VALUES (?1, ?2, ?3, ?4)
                    ON CONFLICT (caller, knowledge_id, name) DO UPDATE SET value = max(value, excluded.value)
                    """)
                try statement.bind(text: position.device.caller.text, at: 1)
                try statement.bind(text: position.device.knowledgeID.text, at: 2)
                try statement.bind(text: position.name, at: 3)
                try statement.bind(integer: position.value, at: 4)
                try statement.run()
            }
        }
    }

    private func write<Value: Sendable>(
        _ body: @Sendable (Connection) throws -> Value
    ) async throws(DeviceRegistryError) -> Value {
        do {
            return try await writer.write(body)
        } catch {
            throw Self.failure(error, path)
        }
    }

    private static func failure(_ error: any Error, _ path: String) -> DeviceRegistryError {
        (error as? DeviceRegistryError) ?? DeviceRegistryError("\(path): \(error)")
    }

    package func close() async {
        do {
            try await writer.close()
        } catch {
            // What was committed is in the file or its log, and the next start finds it there.
            return
        }
    }
}

extension Statement {
    fileprivate mutating func bind(_ text: String?, at index: Int) throws(SQLiteError) {
        guard let text else { return try bindNull(at: index) }
        try bind(text: text, at: index)
    }

    /// The device of a row whose columns are those of both queries.
    fileprivate func device() throws -> RegisteredDevice {
        func optionalText(_ column: Int) throws -> String? { isNull(at: column) ? nil : try text(at: column) }
        guard let knowledgeID = KnowledgeID(try text(at: 0)) else {
            throw DeviceRegistryError("a device has an invalid knowledgeId")
        }
        return RegisteredDevice(
            knowledgeID, givenName: try optionalText(1),
            description: DeviceDescription(
                name: try optionalText(2), platform: try optionalText(3), appVersion: try optionalText(4)),
            firstSeen: try integer(at: 5), lastSeen: try integer(at: 6),
            lastUpload: isNull(at: 7) ? nil : try integer(at: 7),
            knowledge: isNull(at: 8) ? [:] : try DevicePositions(decoding: try bytes(at: 8)).owners)
    }
}

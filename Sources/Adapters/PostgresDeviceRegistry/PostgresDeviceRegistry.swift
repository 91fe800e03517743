import DeviceRegistry
import Postgres
import PostgresRecordStore
import SyncModel
import SyncWire

/// The device registry in Postgres: `weir_device_registry`, in the database of the caller's partition.
///
/// A migration of the tables makes it. Sessions open on demand, and an unreachable server is an error of each call.
package final class PostgresDeviceRegistry: DeviceRegistry {
    /// Sightings of one statement.
    private static let batchSize = 1000

    private let sessions: OwnerSessions
    private let statements: DeviceStatements
    private let maximumPerCaller: Int

    private init(_ sessions: OwnerSessions, _ statements: DeviceStatements, maximumPerCaller: Int) {
        self.sessions = sessions
        self.statements = statements
        self.maximumPerCaller = maximumPerCaller
    }

    /// Does not connect yet.
    ///
    /// - Parameters:
    ///   - configuration: of the databases that hold the tables.
    ///   - partitions: of the history.
    ///   - maximumPerCaller: the devices of a caller that are kept; those not seen for longest are forgotten.
    package static func open(
        _ configuration: PostgresRecordStoreConfiguration, partitions: Int, maximumPerCaller: Int
    ) async throws(DeviceRegistryError) -> PostgresDeviceRegistry {
        let sessions: OwnerSessions
        do {
            // Those of faces come with uploads and downloads, of many devices at the same time.
            sessions = try await .start(
                configuration, partitions: partitions, waitingLimit: 4096, name: "postgres-devices")
        } catch {
            throw DeviceRegistryError("the threads of the device registry cannot be started: \(error)")
        }
        return PostgresDeviceRegistry(
            sessions,
            DeviceStatements(
                table: configuration.deviceRegistryTable, devicePositions: configuration.devicePositionsTable),
            maximumPerCaller: maximumPerCaller)
    }

    package var isShared: Bool { true }

    package func record(_ sightings: [DeviceSighting]) async throws(DeviceRegistryError) {
        let byShard = Dictionary(grouping: sightings) { sessions.number(of: $0.device.caller) }
        var failure: DeviceRegistryError?
        // A database that is away keeps nothing of the others from being written.
        for (number, sightings) in byShard {
            do throws(DeviceRegistryError) { try await record(sightings, in: number) } catch { failure = error }
        }
        if let failure { throw failure }
    }

    private func record(_ sightings: [DeviceSighting], in number: Int) async throws(DeviceRegistryError) {
        var rest = sightings[...]
        while !rest.isEmpty {
            let batch = rest.prefix(Self.batchSize)
            rest = rest.dropFirst(batch.count)
            try await perform(number) { [statements, maximumPerCaller] connection in
                _ = try connection.query(statements.upsert, DeviceStatements.parameters(batch))
                var limit = PostgresParameters([DeviceStatements.callers(batch)])
                limit.append(Int64(maximumPerCaller))
                _ = try connection.query(statements.forget, limit)
            }
        }
    }

    package func devices(
        of caller: SyncID, after last: KnowledgeID?, limit: Int
    ) async throws(DeviceRegistryError) -> [RegisteredDevice] {
        try await perform(sessions.number(of: caller)) { [statements] connection in
            var parameters = PostgresParameters()
            parameters.append(caller.text)
            parameters.append(last?.text ?? "")
            parameters.append(Int64(limit))
            let rows = try connection.query(statements.list, parameters)
            return try (0..<rows.count).map { try DeviceStatements.device(in: rows, $0) }
        }
    }

    package func device(_ device: Device) async throws(DeviceRegistryError) -> RegisteredDevice? {
        try await perform(sessions.number(of: device.caller)) { [statements] connection in
            var parameters = PostgresParameters()
            parameters.append(device.caller.text)
            parameters.append(device.knowledgeID.text)
            let rows = try connection.query(statements.one, parameters)
            return rows.count == 0 ? nil : try DeviceStatements.device(in: rows, 0)
        }
    }

    package func rename(_ device: Device, to name: String?) async throws(DeviceRegistryError) -> Bool {
        try await perform(sessions.number(of: device.caller)) { [statements] connection in
            var parameters = PostgresParameters()
            parameters.append(device.caller.text)
            parameters.append(device.knowledgeID.text)
            if let name { parameters.append(name) } else { parameters.appendNull() }
            return try connection.query(statements.rename, parameters).count > 0
        }
    }

    package func positions(of device: Device) async throws(DeviceRegistryError) -> [String: Int64] {
        try await perform(sessions.number(of: device.caller)) { [statements] connection in
            var parameters = PostgresParameters()
            parameters.append(device.caller.text)
            parameters.append(device.knowledgeID.text)
            let rows = try connection.query(statements.positions, parameters)
            var positions: [String: Int64] = [:]
            for row in 0..<rows.count { positions[try rows.text(row, 0)] = try rows.bigint(row, 1) }
            return positions
        }
    }

    package func raise(_ positions: [DevicePosition]) async throws(DeviceRegistryError) {
        let byShard = Dictionary(grouping: positions) { sessions.number(of: $0.device.caller) }
        var failure: DeviceRegistryError?
        for (number, positions) in byShard {
            do throws(DeviceRegistryError) {
                try await perform(number) { [statements] connection in
                    _ = try connection.query(statements.raise, DeviceStatements.parameters(positions))
                }
            } catch { failure = error }
        }
        if let failure { throw failure }
    }

    package func close() async {
        await sessions.close()
    }

    private func perform<Value: Sendable>(
        _ number: Int, _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws(DeviceRegistryError) -> Value {
        do {
            return try await sessions.perform(number, body)
        } catch {
            throw (error as? DeviceRegistryError) ?? DeviceRegistryError("\(sessions.name(number)): \(error)")
        }
    }
}

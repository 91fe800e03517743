import DeviceRegistry
import Postgres
import PostgresRecordStore
import SyncModel
import SyncWire

/// The device registry in Postgres: `weir_device_registry`, in the database of the caller's partition.
///
/// A migration of the tables makes it. Sessions open on demand, and an unreachable server is an error of each call.
package final class PostgresDeviceRegistry: DeviceRegistry {
    private struct Shard {
        let database: String
        let pool: PostgresPool
    }

    /// Sightings of one statement.
    private static let batchSize = 1000
    /// Sessions with each database; a write of a thousand devices takes some 20 ms.
    private static let connections = 2

    private let shards: [Shard]
    private let statements: DeviceStatements
    private let partitioning: Partitioning
    private let maximumPerCaller: Int

    private init(_ shards: [Shard], _ statements: DeviceStatements, _ partitioning: Partitioning, maximumPerCaller: Int)
    {
        self.shards = shards
        self.statements = statements
        self.partitioning = partitioning
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
        var shards: [Shard] = []
        do {
            for number in configuration.shards.indices {
                let parameters = configuration.sessionParameters(number)
                shards.append(
                    Shard(
                        database: parameters.description,
                        pool: try await PostgresPool.start(
                            parameters, count: connections, connectTimeout: configuration.connectTimeout,
                            waitingLimit: 256, name: "postgres-devices-\(number)"
                        ) { try $0.execute(DeviceStatements.session) }))
            }
        } catch {
            for shard in shards { await shard.pool.close() }
            throw DeviceRegistryError("the threads of the device registry cannot be started: \(error)")
        }
        return PostgresDeviceRegistry(
            shards,
            DeviceStatements(
                table: configuration.deviceRegistryTable, devicePositions: configuration.devicePositionsTable),
            Partitioning(count: partitions),
            maximumPerCaller: maximumPerCaller)
    }

    package func record(_ sightings: [DeviceSighting]) async throws(DeviceRegistryError) {
        let byShard = Dictionary(grouping: sightings) { number(of: $0.device.caller) }
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
        try await perform(number(of: caller)) { [statements] connection in
            var parameters = PostgresParameters()
            parameters.append(caller.text)
            parameters.append(last?.text ?? "")
            parameters.append(Int64(limit))
            let rows = try connection.query(statements.list, parameters)
            return try (0..<rows.count).map { try DeviceStatements.device(in: rows, $0) }
        }
    }

    package func device(_ device: Device) async throws(DeviceRegistryError) -> RegisteredDevice? {
        try await perform(number(of: device.caller)) { [statements] connection in
            var parameters = PostgresParameters()
            parameters.append(device.caller.text)
            parameters.append(device.knowledgeID.text)
            let rows = try connection.query(statements.one, parameters)
            return rows.count == 0 ? nil : try DeviceStatements.device(in: rows, 0)
        }
    }

    package func rename(_ device: Device, to name: String?) async throws(DeviceRegistryError) -> Bool {
        try await perform(number(of: device.caller)) { [statements] connection in
            var parameters = PostgresParameters()
            parameters.append(device.caller.text)
            parameters.append(device.knowledgeID.text)
            if let name { parameters.append(name) } else { parameters.appendNull() }
            return try connection.query(statements.rename, parameters).count > 0
        }
    }

    package func positions(of device: Device) async throws(DeviceRegistryError) -> [String: Int64] {
        try await perform(number(of: device.caller)) { [statements] connection in
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
        let byShard = Dictionary(grouping: positions) { number(of: $0.device.caller) }
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
        for shard in shards { await shard.pool.close() }
    }

    private func number(of caller: SyncID) -> Int {
        partitioning.partition(of: caller) % shards.count
    }

    /// Runs a closure, and repeats it once if its session is lost: a server restart ends all sessions.
    private func perform<Value: Sendable>(
        _ number: Int, _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws(DeviceRegistryError) -> Value {
        let shard = shards[number]
        do {
            do {
                return try await shard.pool.perform(body)
            } catch let error as PostgresError where error.isConnectionLost {
                return try await shard.pool.perform(body)
            }
        } catch {
            throw (error as? DeviceRegistryError) ?? DeviceRegistryError("\(shard.database): \(error)")
        }
    }
}

import Postgres
import RecordStore
import SyncModel
import SyncWire

/// `weir_devices`, devices' progress with each owner, and `weir_outcomes`, a ring of each device's newest 16 outcomes.
enum DevicesTable {
    /// Reads the progress of many devices in one statement.
    static func read(
        _ requests: [ProgressRequest], _ connection: PostgresConnection, _ statements: SystemStatements
    ) throws -> [DeviceProgress] {
        try progress(in: connection.query(statements.progress, parameters(requests)), of: requests)
    }

    /// The parameters of the statement that reads progress.
    static func parameters(_ requests: [ProgressRequest]) -> PostgresParameters {
        var keys = DeviceKeyArrays()
        var batches = BinaryArray(.bigint)
        for request in requests {
            keys.append(request.key)
            batches.append(request.batch)
        }
        return PostgresParameters(keys.arrays + [batches])
    }

    static func progress(
        in rows: borrowing PostgresResult, of requests: [ProgressRequest]
    ) throws -> [DeviceProgress] {
        var progress = Array(repeating: DeviceProgress(), count: requests.count)
        for row in 0..<rows.count {
            let index = Int(try rows.bigint(row, 0)) - 1
            progress[index].highestBatch = try rows.bigint(row, 1)
            if !rows.isNull(row, 2) { progress[index].outcome = try Outcome(decoding: rows.bytes(row, 2)) }
        }
        return progress
    }

    /// New outcomes as arrays.
    struct Outcomes {
        /// For each device: key, highest batch, number of outcomes.
        let devices: PostgresParameters
        /// For each kept outcome: key, distance from the device's newest, batch, outcome.
        let outcomes: PostgresParameters

        /// - Parameter others: further devices that need a row.
        init(_ stored: [StoredOutcome], others: [DeviceKey]) {
            var gains: [DeviceKey: (highest: Int64, count: Int64)] = [:]
            var order: [DeviceKey] = []
            for key in others where gains.updateValue((0, 0), forKey: key) == nil { order.append(key) }
            for entry in stored {
                let batch = entry.outcome.batch
                guard let known = gains[entry.key] else {
                    order.append(entry.key)
                    gains[entry.key] = (batch, 1)
                    continue
                }
                gains[entry.key] = (max(known.highest, batch), known.count + 1)
            }
            var keys = DeviceKeyArrays()
            var highest = BinaryArray(.bigint)
            var counts = BinaryArray(.bigint)
            for key in order {
                guard let gain = gains[key] else { continue }
                keys.append(key)
                highest.append(gain.highest)
                counts.append(gain.count)
            }
            devices = PostgresParameters(keys.arrays + [highest, counts])

            var keptKeys = DeviceKeyArrays()
            var distances = BinaryArray(.bigint)
            var batches = BinaryArray(.bigint)
            var outcomes = BinaryArray(.bytea)
            for entry in stored {
                guard let gain = gains[entry.key] else { continue }
                // Counts down to 1 for the device's newest.
                gains[entry.key] = (gain.highest, gain.count - 1)
                guard gain.count <= Int64(Outcome.keptPerDevice) else { continue }
                keptKeys.append(entry.key)
                distances.append(gain.count)
                batches.append(entry.outcome.batch)
                outcomes.append(bytes: entry.outcome.encode().span)
            }
            self.outcomes = PostgresParameters(keptKeys.arrays + [distances, batches, outcomes])
        }
    }
}

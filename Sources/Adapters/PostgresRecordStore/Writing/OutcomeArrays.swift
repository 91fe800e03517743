import Postgres
import RecordStore
import SyncModel
import SyncWire

/// New outcomes as arrays: what each device gained, and the newest outcomes of each, which alone are kept.
struct OutcomeArrays {
    /// For the devices: keys, highest batch, number of outcomes.
    let devices: PostgresParameters
    /// For the outcomes: keys, how far behind the device's newest, batch, outcome; `nil` where there are none.
    let outcomes: PostgresParameters

    init(_ stored: [StoredOutcome]) {
        var gains: [DeviceKey: (highest: Int64, count: Int64)] = [:]
        var order: [DeviceKey] = []
        for entry in stored {
            let batch = entry.outcome.batch
            guard let known = gains[entry.key] else {
                order.append(entry.key)
                gains[entry.key] = (batch, 1)
                continue
            }
            gains[entry.key] = (max(known.highest, batch), known.count + 1)
        }
        var keys = KeyArrays()
        var highest = BinaryArray(.bigint)
        var counts = BinaryArray(.bigint)
        for key in order {
            guard let gain = gains[key] else { continue }
            keys.append(key)
            highest.append(gain.highest)
            counts.append(gain.count)
        }
        devices = Self.parameters(keys.all + [highest, counts])

        var keptKeys = KeyArrays()
        var behind = BinaryArray(.bigint)
        var batches = BinaryArray(.bigint)
        var outcomes = BinaryArray(.bytea)
        for entry in stored {
            guard let gain = gains[entry.key] else { continue }
            // Counted down to 1 for the device's newest.
            gains[entry.key] = (gain.highest, gain.count - 1)
            guard gain.count <= Int64(Outcome.keptPerDevice) else { continue }
            keptKeys.append(entry.key)
            behind.append(gain.count)
            batches.append(entry.outcome.batch)
            outcomes.append(bytes: entry.outcome.encode().span)
        }
        self.outcomes = Self.parameters(keptKeys.all + [behind, batches, outcomes])
    }

    private static func parameters(_ arrays: [BinaryArray]) -> PostgresParameters {
        var parameters = PostgresParameters()
        for array in arrays { parameters.append(array) }
        return parameters
    }

    private struct KeyArrays {
        private var owners = BinaryArray(.text)
        private var callers = BinaryArray(.text)
        private var names = BinaryArray(.text)

        mutating func append(_ key: DeviceKey) {
            owners.append(key.owner.text)
            callers.append(key.device.caller.text)
            names.append(key.device.knowledgeID.text)
        }

        var all: [BinaryArray] { [owners, callers, names] }
    }
}

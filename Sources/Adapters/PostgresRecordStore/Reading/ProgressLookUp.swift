import Postgres
import RecordStore
import SyncModel
import SyncWire

/// Reads the progress of many devices in one statement.
enum ProgressLookUp {
    /// The progress of devices, one for each request.
    static func read(
        _ requests: [ProgressRequest], _ connection: PostgresConnection, _ statements: SystemStatements
    ) throws -> [DeviceProgress] {
        var owners = BinaryArray(.text)
        var callers = BinaryArray(.text)
        var names = BinaryArray(.text)
        var batches = BinaryArray(.bigint)
        for request in requests {
            owners.append(request.key.owner.text)
            callers.append(request.key.device.caller.text)
            names.append(request.key.device.knowledgeID.text)
            batches.append(request.batch)
        }
        var parameters = PostgresParameters()
        for array in [owners, callers, names, batches] { parameters.append(array) }
        let rows = try connection.query(statements.progress, parameters)
        var answers = Array(repeating: DeviceProgress(), count: requests.count)
        for row in 0..<rows.count {
            let place = Int(try rows.bigint(row, 0)) - 1
            answers[place].highestBatch = try rows.bigint(row, 1)
            if !rows.isNull(row, 2) { answers[place].outcome = try Outcome(decoding: rows.bytes(row, 2)) }
        }
        return answers
    }
}

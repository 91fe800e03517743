import RecordStore
import RelationalTables
import SQLite
import SyncModel
import SyncWire

/// `weir_devices`, a device's progress with one owner, and `weir_outcomes`, a ring of its newest 16 outcomes.
enum DevicesTable {
    private static let places = Int64(Outcome.keptPerDevice)

    /// Raises the device's highest batch number and overwrites its oldest outcome.
    static func write(_ stored: StoredOutcome, _ connection: Connection) throws {
        var device = try connection.statement(
            """
            INSERT INTO weir_devices (owner, caller, knowledge_id, highest_batch, outcomes) VALUES (?1, ?2, ?3, ?4, 1)
            ON CONFLICT (owner, caller, knowledge_id) DO UPDATE SET
                highest_batch = max(highest_batch, excluded.highest_batch), outcomes = outcomes + 1
            RETURNING device, outcomes
            """)
        try bind(stored.key, to: &device)
        try device.bind(integer: stored.outcome.batch, at: 4)
        guard try device.step() else {
            throw RecordStoreError.corrupt("\(connection.path): an upsert into weir_devices returned no row")
        }
        let place = try device.integer(at: 0) * places + (try device.integer(at: 1) - 1) % places
        // Completes the write.
        try device.run()

        var outcome = try connection.statement(
            """
            INSERT INTO weir_outcomes (place, batch, outcome) VALUES (?1, ?2, ?3)
            ON CONFLICT (place) DO UPDATE SET batch = excluded.batch, outcome = excluded.outcome
            """)
        try outcome.bind(integer: place, at: 1)
        try outcome.bind(integer: stored.outcome.batch, at: 2)
        try outcome.run(borrowingBlob: stored.outcome.encode().span.bytes, at: 3)
    }

    /// The device's highest batch number, and the outcome of the requested batch if it is kept.
    static func read(_ request: ProgressRequest, _ connection: Connection) throws -> DeviceProgress {
        var device = try connection.statement(
            "SELECT device, highest_batch FROM weir_devices WHERE owner = ?1 AND caller = ?2 AND knowledge_id = ?3")
        try bind(request.key, to: &device)
        guard try device.step() else { return DeviceProgress() }
        let number = try device.integer(at: 0)
        let highest = try device.integer(at: 1)
        device.reset()
        // Usually the batch is new and has no outcome.
        guard request.batch <= highest else { return DeviceProgress(highestBatch: highest) }
        var outcome = try connection.statement(
            "SELECT outcome FROM weir_outcomes WHERE place BETWEEN ?1 AND ?2 AND batch = ?3")
        try outcome.bind(integer: number * places, at: 1)
        try outcome.bind(integer: number * places + places - 1, at: 2)
        try outcome.bind(integer: request.batch, at: 3)
        guard try outcome.step() else { return DeviceProgress(highestBatch: highest) }
        return DeviceProgress(highestBatch: highest, outcome: try Outcome(decoding: try outcome.bytes(at: 0)))
    }

    /// The number of a device's row.
    ///
    /// - Parameter isAdded: whether a device without a row gets one: it has sent no numbered batch.
    static func number(of key: DeviceKey, adding isAdded: Bool, _ connection: Connection) throws -> Int64? {
        var found = try connection.statement(
            "SELECT device FROM weir_devices WHERE owner = ?1 AND caller = ?2 AND knowledge_id = ?3")
        try bind(key, to: &found)
        if try found.step() { return try found.integer(at: 0) }
        guard isAdded else { return nil }
        var added = try connection.statement(
            """
            INSERT INTO weir_devices (owner, caller, knowledge_id, highest_batch, outcomes) VALUES (?1, ?2, ?3, 0, 0)
            RETURNING device
            """)
        try bind(key, to: &added)
        guard try added.step() else {
            throw RecordStoreError.corrupt("\(connection.path): an insert into weir_devices returned no row")
        }
        let number = try added.integer(at: 0)
        // Completes the write.
        try added.run()
        return number
    }

    private static func bind(_ key: DeviceKey, to statement: inout Statement) throws(SQLiteError) {
        try statement.bind(text: key.owner.text, at: 1)
        try statement.bind(text: key.device.caller.text, at: 2)
        try statement.bind(text: key.device.knowledgeID.text, at: 3)
    }
}

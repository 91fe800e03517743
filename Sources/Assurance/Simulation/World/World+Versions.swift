import DeviceModel
import MemoryRecordStore
import SyncModel

/// The schema versions that are registered while devices work.
extension World {
    /// The schema versions that `control` has.
    var schemas: SchemaHistory { scenario.schemas(upTo: registered) }

    /// Registers the next schema version: the tables get it in a transaction that may be lost, and processes learn it one by one.
    private func registerSchema() {
        registered += 1
        record("schema version \(registered) is registered")
        if !faults.areOn || random.once(in: 2) {
            let schemas = schemas
            Task {
                do {
                    try await store.prepare(schemas, epoch: scenario.history.epoch)
                } catch {
                    fail(.progress, "the tables cannot be prepared: \(error)")
                }
            }
        }
        for role in roles { role.learnLater() }
    }

    /// Registers the next version between some of the steps.
    func registerSchemaAtTimes() {
        if registered < scenario.versions.count, !roles.isEmpty, random.once(in: 120) { registerSchema() }
    }

    /// Registers the versions that are left.
    func registerSchemas() { while registered < scenario.versions.count { registerSchema() } }

    /// Whether every process knows every version.
    var areSchemasKnown: Bool { roles.allSatisfy { $0.knows(scenario.versions.count) } }
}

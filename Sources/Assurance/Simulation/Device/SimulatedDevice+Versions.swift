import DeviceModel
import SyncModel

/// The schema version that a device names, and in which it writes.
extension SimulatedDevice {
    /// The number of the version that it names.
    private var named: Int? { memory.schemaVersion.flatMap { world.scenario.schemas[$0]?.version.ordinal } }

    /// The version in which it writes: that of its app, at most the one that it names.
    var writable: Schema { world.scenario.versions[min(app, named ?? 1) - 1] }

    /// A device is never taken back to an older version than it names: it may have written columns that that one lacks.
    func takeVersion(of answer: Answer) {
        guard let version = answer.schemaVersion, let next = world.scenario.schemas[version]?.version.ordinal else {
            return world.fail(.rules, "\(name) is sent the schema version \(answer.schemaVersion ?? "none")")
        }
        guard namesVersion else { return }
        if let named, next < named {
            world.fail(.rules, "\(name) names schema version \(named), and is sent \(next)")
        }
        memory.schemaVersion = version
    }
}

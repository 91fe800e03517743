import DeviceRegistry
import SyncModel

/// A registry of devices of which a test needs a part: what it leaves out keeps nothing.
protocol PartialRegistry: DeviceRegistry {}

extension PartialRegistry {
    var isShared: Bool { false }

    func record(_ sightings: [DeviceSighting]) async throws(DeviceRegistryError) {}

    func devices(
        of caller: SyncID, after last: KnowledgeID?, limit: Int
    ) async throws(DeviceRegistryError) -> [RegisteredDevice] { [] }

    func device(_ device: Device) async throws(DeviceRegistryError) -> RegisteredDevice? { nil }

    func rename(_ device: Device, to name: String?) async throws(DeviceRegistryError) -> Bool { false }

    func positions(of device: Device) async throws(DeviceRegistryError) -> [String: Int64] { [:] }

    func raise(_ positions: [DevicePosition]) async throws(DeviceRegistryError) {}

    func close() async {}
}

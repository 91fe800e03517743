import DeviceRegistry
import Metrics
import Observability
import SyncModel
import Synchronization

/// The positions of devices that faces note, in memory and in the registry of devices.
///
/// They are read at the first request of a device on this gateway, and written seldom and many at once. They only rise; one that
/// is lost is an earlier one again.
final class FacePositions: Sendable {
    private struct Entry {
        var values: [String: Int64] = [:]
        /// The names that are not written yet.
        var unwritten: Set<String> = []
        /// Whether those of the registry are among the values.
        var isRead = false
    }

    private struct State {
        var devices: [Device: Entry] = [:]

        /// Makes space for one more device by forgetting those without anything to write.
        mutating func makeSpace() -> Bool {
            guard devices.count >= FacePositions.maximumDevices else { return true }
            devices = devices.filter { !$0.value.unwritten.isEmpty }
            return devices.count < FacePositions.maximumDevices
        }

        mutating func merge(_ values: [String: Int64], into device: Device) {
            guard devices[device] != nil || makeSpace() else { return }
            devices[device, default: Entry()].values.merge(values, uniquingKeysWith: max)
        }

        mutating func read(_ stored: [String: Int64], of device: Device) {
            merge(stored, into: device)
            devices[device]?.isRead = true
        }
    }

    /// The devices whose positions are in memory, about a kilobyte each.
    private static let maximumDevices = 50_000
    /// How many are written at once.
    private static let stepCount = 1000

    private let registry: any DeviceRegistry
    private let metrics: GatewayMetrics
    private let logger: Logger
    private let state = Mutex(State())

    init(_ registry: any DeviceRegistry, metrics: GatewayMetrics, logger: Logger) {
        self.registry = registry
        self.metrics = metrics
        self.logger = logger
    }

    /// Whether other gateways write them, too.
    var isShared: Bool { registry.isShared }

    /// What is in memory of a position.
    func known(_ name: String, of device: Device) -> Int64? { state.withLock { $0.devices[device]?.values[name] } }

    /// - Parameter isFresh: reads the registry, too, which other gateways write.
    func positions(of device: Device, isFresh: Bool) async throws(DeviceRegistryError) -> [String: Int64] {
        if !isFresh || !isShared, let known = state.withLock({ $0.devices[device] }), known.isRead {
            return known.values
        }
        let stored = try await registry.positions(of: device)
        return state.withLock { state in
            state.read(stored, of: device)
            return state.devices[device]?.values ?? stored
        }
    }

    /// - Parameter isDurable: writes them at once.
    func raise(_ positions: [String: Int64], of device: Device, isDurable: Bool) async throws(DeviceRegistryError) {
        if isDurable {
            try await registry.raise(positions.map { DevicePosition(device, name: $0.key, $0.value) })
            return state.withLock { $0.merge(positions, into: device) }
        }
        state.withLock { state in
            guard state.devices[device] != nil || state.makeSpace() else { return }
            var entry = state.devices[device] ?? Entry()
            for (name, value) in positions where value > entry.values[name] ?? .min {
                entry.values[name] = value
                entry.unwritten.insert(name)
            }
            state.devices[device] = entry
        }
    }

    /// Writes what was raised since the last call; what cannot be written waits for the next one.
    ///
    /// One call at a time.
    func write() async {
        let raised = state.withLock { state in
            var raised: [DevicePosition] = []
            for (device, entry) in state.devices where !entry.unwritten.isEmpty {
                for name in entry.unwritten {
                    raised.append(DevicePosition(device, name: name, entry.values[name] ?? 0))
                }
                state.devices[device]?.unwritten = []
            }
            return raised
        }
        var rest = raised[...]
        do throws(DeviceRegistryError) {
            while !rest.isEmpty {
                try await registry.raise(Array(rest.prefix(Self.stepCount)))
                rest = rest.dropFirst(Self.stepCount)
            }
        } catch {
            state.withLock { state in
                for position in rest { state.devices[position.device]?.unwritten.insert(position.name) }
            }
            metrics.deviceFailures.add()
            logger.warning("Positions of devices cannot be registered; trying again later", error: error)
        }
    }
}

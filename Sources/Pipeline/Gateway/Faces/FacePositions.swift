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
        let maximumDevices: Int
        /// How many devices have something to write, in all and of each caller.
        var unwrittenCount = 0
        var unwrittenOfCallers: [SyncID: Int] = [:]

        /// Makes space for one more device by forgetting those without anything to write: half of them at least, while the registry
        /// can be written.
        mutating func makeSpace() -> Bool {
            guard devices.count >= maximumDevices else { return true }
            devices = devices.filter { !$0.value.unwritten.isEmpty }
            return devices.count < maximumDevices
        }

        mutating func merge(_ values: [String: Int64], into device: Device) {
            guard devices[device] != nil || makeSpace() else { return }
            devices[device, default: Entry()].values.merge(values, uniquingKeysWith: max)
        }

        mutating func read(_ stored: [String: Int64], of device: Device) {
            merge(stored, into: device)
            devices[device]?.isRead = true
        }

        /// Raises positions that are to be written.
        ///
        /// - Returns: false where there is no room for the device: its caller may have as many as it leaves to others.
        mutating func raise(_ positions: [String: Int64], of device: Device) -> Bool {
            guard devices[device] != nil || makeSpace() else { return false }
            var entry = devices[device] ?? Entry()
            let isListed = !entry.unwritten.isEmpty
            for (name, value) in positions where value > entry.values[name] ?? .min {
                entry.values[name] = value
                entry.unwritten.insert(name)
            }
            if !isListed, !entry.unwritten.isEmpty {
                let own = unwrittenOfCallers[device.caller, default: 0]
                guard own < maximumDevices / 2 - unwrittenCount else { return false }
                list(device)
            }
            devices[device] = entry
            return true
        }

        /// Counts a device that has something to write.
        private mutating func list(_ device: Device) {
            unwrittenOfCallers[device.caller, default: 0] += 1
            unwrittenCount += 1
        }

        /// A position could not be written.
        mutating func restore(_ position: DevicePosition) {
            merge([position.name: position.value], into: position.device)
            guard let entry = devices[position.device] else { return }
            if entry.unwritten.isEmpty { list(position.device) }
            devices[position.device]?.unwritten.insert(position.name)
        }

        /// What is to be written.
        mutating func take() -> [DevicePosition] {
            var raised: [DevicePosition] = []
            for (device, entry) in devices where !entry.unwritten.isEmpty {
                for name in entry.unwritten {
                    raised.append(DevicePosition(device, name: name, entry.values[name] ?? 0))
                }
                devices[device]?.unwritten = []
            }
            (unwrittenCount, unwrittenOfCallers) = (0, [:])
            return raised
        }
    }

    /// The devices whose positions are in memory, about a kilobyte each.
    private static let standardDevices = 50_000
    /// How many are written at once.
    private static let stepCount = 1000

    private let registry: any DeviceRegistry
    private let metrics: GatewayMetrics
    private let logger: Logger
    private let state: Mutex<State>

    /// - Parameter maximumDevices: in memory; half of them may have something to write.
    init(
        _ registry: any DeviceRegistry, maximumDevices: Int = FacePositions.standardDevices, metrics: GatewayMetrics,
        logger: Logger
    ) {
        state = Mutex(State(maximumDevices: maximumDevices))
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

    /// - Parameter isDurable: writes them at once, as those are for which there is no room.
    func raise(_ positions: [String: Int64], of device: Device, isDurable: Bool) async throws(DeviceRegistryError) {
        if isDurable || !state.withLock({ $0.raise(positions, of: device) }) {
            try await registry.raise(positions.map { DevicePosition(device, name: $0.key, $0.value) })
            state.withLock { $0.merge(positions, into: device) }
        }
    }

    /// Writes what was raised since the last call; what cannot be written waits for the next one.
    ///
    /// One call at a time.
    func write() async {
        let raised = state.withLock { $0.take() }
        var rest = raised[...]
        do throws(DeviceRegistryError) {
            while !rest.isEmpty {
                try await registry.raise(Array(rest.prefix(Self.stepCount)))
                rest = rest.dropFirst(Self.stepCount)
            }
        } catch {
            state.withLock { state in
                for position in rest { state.restore(position) }
            }
            metrics.deviceFailures.add()
            logger.warning("Positions of devices cannot be registered; trying again later", error: error)
        }
    }
}

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
        let maximumDevices: Int
        /// By caller and device.
        private var entries: [SyncID: [KnowledgeID: Entry]] = [:]
        private var count = 0
        /// How many devices have something to write, in all and of each caller.
        private var unwrittenCount = 0
        private var unwrittenOfCallers: [SyncID: Int] = [:]

        init(maximumDevices: Int) { self.maximumDevices = maximumDevices }

        /// What is known of a device.
        subscript(_ device: Device) -> Entry? { entries[device.caller]?[device.knowledgeID] }

        private mutating func keep(_ entry: Entry, of device: Device) {
            let known = entries[device.caller, default: [:]].updateValue(entry, forKey: device.knowledgeID)
            if known == nil { count += 1 }
        }

        /// Makes space for one more device by forgetting those without anything to write: half of them at least, while the registry
        /// can be written.
        private mutating func makeSpace() -> Bool {
            guard count >= maximumDevices else { return true }
            entries = entries.compactMapValues { own in
                let kept = own.filter { !$0.value.unwritten.isEmpty }
                return kept.isEmpty ? nil : kept
            }
            count = entries.values.reduce(0) { $0 + $1.count }
            return count < maximumDevices
        }

        mutating func merge(_ values: [String: Int64], into device: Device, isRead: Bool = false) {
            guard self[device] != nil || makeSpace() else { return }
            var entry = self[device] ?? Entry()
            entry.values.merge(values, uniquingKeysWith: max)
            entry.isRead = entry.isRead || isRead
            keep(entry, of: device)
        }

        /// Raises positions that are to be written.
        ///
        /// - Returns: false where there is no room for the device: its caller may have as many as it leaves to others.
        mutating func raise(_ positions: [String: Int64], of device: Device) -> Bool {
            guard self[device] != nil || makeSpace() else { return false }
            var entry = self[device] ?? Entry()
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
            keep(entry, of: device)
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
            guard var entry = self[position.device] else { return }
            if entry.unwritten.isEmpty { list(position.device) }
            entry.unwritten.insert(position.name)
            keep(entry, of: position.device)
        }

        /// What is to be written of a caller's devices, or of all.
        mutating func take(of caller: SyncID? = nil) -> [DevicePosition] {
            var raised: [DevicePosition] = []
            for caller in caller.map({ [$0] }) ?? Array(unwrittenOfCallers.keys) {
                guard let count = unwrittenOfCallers.removeValue(forKey: caller) else { continue }
                unwrittenCount -= count
                for (id, entry) in entries[caller] ?? [:] where !entry.unwritten.isEmpty {
                    let device = Device(caller: caller, knowledgeID: id)
                    for name in entry.unwritten {
                        raised.append(DevicePosition(device, name: name, entry.values[name] ?? 0))
                    }
                    entries[caller]?[id]?.unwritten = []
                }
            }
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
    func known(_ name: String, of device: Device) -> Int64? { state.withLock { $0[device]?.values[name] } }

    /// - Parameter isFresh: reads the registry, too, which other gateways write.
    func positions(of device: Device, isFresh: Bool) async throws(DeviceRegistryError) -> [String: Int64] {
        if !isFresh || !isShared, let known = state.withLock({ $0[device] }), known.isRead {
            return known.values
        }
        let stored = try await registry.positions(of: device)
        return state.withLock { state in
            state.merge(stored, into: device, isRead: true)
            return state[device]?.values ?? stored
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
        do throws(DeviceRegistryError) {
            try await write(state.withLock { $0.take() })
        } catch {
            metrics.deviceFailures.add()
            logger.warning("Positions of devices cannot be registered; trying again later", error: error)
        }
    }

    /// Writes what was raised of a caller's devices, before the registry may forget some of them: it forgets their positions, too.
    func write(devicesOf caller: SyncID) async throws(DeviceRegistryError) {
        try await write(state.withLock { $0.take(of: caller) })
    }

    private func write(_ raised: [DevicePosition]) async throws(DeviceRegistryError) {
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
            throw error
        }
    }
}

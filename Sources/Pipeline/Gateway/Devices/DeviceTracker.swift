import DeviceRegistry
import Glibc
import Metrics
import Observability
import SyncModel
import Synchronization

/// What the gateway needs of callers' devices.
package struct GatewayDevices: Sendable {
    let registry: any DeviceRegistry
    let isRevoked: @Sendable (Device) -> Bool
    let revoked: @Sendable (SyncID) -> Set<KnowledgeID>
    let revoke: @Sendable (Device) async throws -> Void
    let now: @Sendable () -> Int64

    /// - Parameters:
    ///   - registry: where the gateway notes which devices it has seen.
    ///   - isRevoked: whether a device may do nothing, as known at the time of the call; asked with every request, on the HTTP
    ///     server's threads.
    ///   - revoked: the revoked devices of a caller.
    ///   - revoke: revokes a device at all gateways; without effect for one that is revoked.
    ///   - now: microseconds since 1970.
    package init(
        registry: any DeviceRegistry, isRevoked: @escaping @Sendable (Device) -> Bool,
        revoked: @escaping @Sendable (SyncID) -> Set<KnowledgeID>,
        revoke: @escaping @Sendable (Device) async throws -> Void,
        now: @escaping @Sendable () -> Int64 = GatewayDevices.systemTime
    ) {
        self.registry = registry
        self.isRevoked = isRevoked
        self.revoked = revoked
        self.revoke = revoke
        self.now = now
    }

    /// The system's time.
    package static let systemTime: @Sendable () -> Int64 = {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }
}

/// Gathers which devices were seen, and writes them to the registry seldom and many at once.
///
/// A request costs a look into a table in memory. What was not written when the process ends is lost.
final class DeviceTracker: Sendable {
    /// What was seen of a caller's devices.
    private struct Sightings {
        var devices: [KnowledgeID: DeviceSighting] = [:]
        var bytes = 0

        /// Adds a sighting unless it takes more than it leaves free.
        ///
        /// - Returns: by how many bytes the size has grown.
        mutating func add(_ sighting: DeviceSighting, isOlder: Bool, free: Int) -> Int {
            let id = sighting.device.knowledgeID
            let known = devices[id]
            var merged = sighting
            if let known {
                if isOlder { merged.merge(known) } else { merged = known.merged(with: sighting) }
            }
            let growth = merged.memory - (known?.memory ?? 0)
            guard bytes + growth <= free - growth else { return 0 }
            devices[id] = merged
            bytes += growth
            return growth
        }
    }

    private struct State {
        /// What waits to be written.
        var waiting: [SyncID: Sightings] = [:]
        /// What is being written.
        var writing: [SyncID: Sightings] = [:]
        /// The size of what waits.
        var bytes = 0

        /// Adds a sighting unless there is no room for it: a caller may take as much as it leaves to others.
        mutating func add(_ sighting: DeviceSighting, isOlder: Bool = false) {
            let caller = sighting.device.caller
            let free = DeviceTracker.maximumBytes - bytes
            if let growth = waiting[caller]?.add(sighting, isOlder: isOlder, free: free) {
                bytes += growth
                return
            }
            var first = Sightings()
            bytes += first.add(sighting, isOlder: isOlder, free: free)
            if !first.devices.isEmpty { waiting[caller] = first }
        }

        /// What waits of a caller.
        mutating func take(_ caller: SyncID) -> [DeviceSighting] {
            guard let taken = waiting.removeValue(forKey: caller) else { return [] }
            bytes -= taken.bytes
            return Array(taken.devices.values)
        }
    }

    /// The size of what waits to be written; what has no room is not noted.
    private static let maximumBytes = 64 << 20

    private let registry: any DeviceRegistry
    private let metrics: GatewayMetrics
    private let logger: Logger
    private let state = Mutex(State())

    init(_ registry: any DeviceRegistry, metrics: GatewayMetrics, logger: Logger) {
        self.registry = registry
        self.metrics = metrics
        self.logger = logger
    }

    func add(_ sighting: DeviceSighting) { state.withLock { $0.add(sighting) } }

    /// Writes what was seen since the last call; what cannot be written waits for the next one.
    ///
    /// One call at a time.
    func write() async {
        let seen = state.withLock { state in
            state.writing = state.waiting
            (state.waiting, state.bytes) = ([:], 0)
            return state.writing.values.flatMap(\.devices.values)
        }
        do throws(DeviceRegistryError) {
            try await registry.record(seen)
        } catch {
            restore(seen)
            metrics.deviceFailures.add()
            logger.warning("Devices that were seen cannot be registered; trying again later", error: error)
        }
        state.withLock { $0.writing = [:] }
    }

    /// Writes what was seen of a caller's devices, so that it can be read.
    func write(devicesOf caller: SyncID) async throws(DeviceRegistryError) {
        let seen = state.withLock { state in
            // Twice is harmless, and the other write may not have come to this caller.
            for sighting in state.writing[caller]?.devices.values ?? [:].values { state.add(sighting, isOlder: true) }
            return state.take(caller)
        }
        do throws(DeviceRegistryError) {
            try await registry.record(seen)
        } catch {
            restore(seen)
            throw error
        }
    }

    private func restore(_ sightings: [DeviceSighting]) {
        state.withLock { state in
            for sighting in sightings { state.add(sighting, isOlder: true) }
        }
    }
}

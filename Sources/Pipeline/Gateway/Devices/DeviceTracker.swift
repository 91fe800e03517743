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
    let revoked: @Sendable (SyncID) -> [Device]
    let decide: @Sendable (DeviceDecision) async throws -> Void
    let now: @Sendable () -> Int64

    /// - Parameters:
    ///   - registry: where the gateway notes which devices it has seen.
    ///   - isRevoked: whether a device may do nothing, as known at the time of the call; asked with every request, on the HTTP
    ///     server's threads.
    ///   - revoked: the revoked devices of a caller.
    ///   - decide: makes a decision known to all gateways.
    ///   - now: microseconds since 1970.
    package init(
        registry: any DeviceRegistry, isRevoked: @escaping @Sendable (Device) -> Bool,
        revoked: @escaping @Sendable (SyncID) -> [Device],
        decide: @escaping @Sendable (DeviceDecision) async throws -> Void,
        now: @escaping @Sendable () -> Int64 = GatewayDevices.systemTime
    ) {
        self.registry = registry
        self.isRevoked = isRevoked
        self.revoked = revoked
        self.decide = decide
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
    /// Devices that wait to be written, about 300 bytes each; further ones are not noted until some are written.
    private static let maximumWaiting = 200_000
    /// Devices of one call of the registry.
    private static let batchSize = 1000

    private let registry: any DeviceRegistry
    private let metrics: GatewayMetrics
    private let logger: Logger
    private let waiting = Mutex<[Device: DeviceSighting]>([:])

    init(_ registry: any DeviceRegistry, metrics: GatewayMetrics, logger: Logger) {
        self.registry = registry
        self.metrics = metrics
        self.logger = logger
    }

    func add(_ sighting: DeviceSighting) {
        waiting.withLock { waiting in
            if waiting[sighting.device]?.merge(sighting) == nil, waiting.count < Self.maximumWaiting {
                waiting[sighting.device] = sighting
            }
        }
    }

    /// Writes what was seen since the last call; what cannot be written waits for the next one.
    func write() async {
        var rest = waiting.withLock { waiting in
            defer { waiting = [:] }
            return Array(waiting.values)
        }[...]
        while !rest.isEmpty {
            do throws(DeviceRegistryError) {
                try await registry.record(Array(rest.prefix(Self.batchSize)))
                rest = rest.dropFirst(Self.batchSize)
            } catch {
                restore(rest)
                metrics.deviceFailures.add()
                logger.warning("Devices that were seen cannot be registered; trying again later", error: error)
                return
            }
        }
    }

    /// Writes what was seen of a caller's devices, so that it can be read.
    func write(devicesOf caller: SyncID) async throws(DeviceRegistryError) {
        let seen = waiting.withLock { waiting in
            let seen = waiting.filter { $0.key.caller == caller }
            for device in seen.keys { waiting[device] = nil }
            return Array(seen.values)
        }
        do throws(DeviceRegistryError) {
            try await registry.record(seen)
        } catch {
            restore(seen[...])
            throw error
        }
    }

    private func restore(_ sightings: ArraySlice<DeviceSighting>) {
        waiting.withLock { waiting in
            for var sighting in sightings {
                if let later = waiting[sighting.device] {
                    sighting.merge(later)
                } else if waiting.count >= Self.maximumWaiting {
                    continue
                }
                waiting[sighting.device] = sighting
            }
        }
    }
}

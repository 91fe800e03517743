import Configuration
import FanOutLink
import Glibc
import Metrics
import NetworkLink
import Observability
import SyncModel
import Synchronization
import TestClocks

/// A scripted fan-out behind a server on a port of its own.
struct ServedFanOut {
    let fanOut: ScriptedFanOut
    let server: FanOutServer
    let address: NetworkAddress
    let clock: ManualClock
    let log: LogLines

    init(
        _ fanOut: ScriptedFanOut = ScriptedFanOut(), ready: Set<Int> = Set(0..<Sample.partitions),
        epoch: String = Sample.epoch, partitions: Int = Sample.partitions, key: LinkKey? = nil,
        accepting acceptedKey: LinkKey? = nil, at address: NetworkAddress = NetworkAddress(host: "127.0.0.1", port: 0)!,
        _ change: (inout FanOutServerConfiguration) -> Void = { _ in }
    ) async throws {
        self.fanOut = fanOut
        clock = ManualClock()
        log = LogLines()
        var configuration = FanOutServerConfiguration(address: address)
        change(&configuration)
        server = try FanOutServer(
            configuration, link: LinkConfiguration(key: key, accepting: acceptedKey), serving: fanOut,
            description: LinkDescription(epoch: epoch, partitions: partitions, ready: ready), logger: log.logger,
            clock: clock)
        self.address = try await server.start()
    }
}

/// The gateway side of the link.
struct ConnectedGateway {
    let remote: RemoteFanOut
    let clock = ManualClock()
    let log = LogLines()
    let registry = MetricRegistry()
    let unserved = Recorder<Set<Int>>()
    let passed = Recorder<StreamReport>()

    init(
        to addresses: [NetworkAddress], epoch: String = Sample.epoch, partitions: Int = Sample.partitions,
        key: LinkKey? = nil, accepting acceptedKey: LinkKey? = nil, maximumRequests: Int = 1000
    ) async throws {
        remote = try RemoteFanOut(
            RemoteFanOutConfiguration(fanOuts: addresses).with(\.maximumRequests, maximumRequests),
            link: LinkConfiguration(key: key, accepting: acceptedKey), epoch: epoch, partitions: partitions,
            logger: log.logger,
            metrics: LinkMetrics(registry), clock: clock, passed: { [passed] in passed.record($0) },
            unserved: { [unserved] in unserved.record($0) })
        try await remote.start()
    }

    /// Waits until so many fan-outs are connected.
    func connected(_ count: Int) async {
        await log.lines.until { $0.count { $0.contains("Fan-out connected") } >= count }
    }

    /// Waits until all partitions are served.
    func served() async { await unserved.until { $0.last == [] } }

    /// Sends a heartbeat; returns when the link's thread has it.
    func heartbeat() async { await clock.heartbeat() }
}

extension ManualClock {
    func heartbeat() async {
        await sleepers(1)
        advance(by: .milliseconds(750))
        await sleepers(1)
    }
}

enum Sample {
    static let epoch = "e1"
    static let partitions = 8

    /// An owner in a partition.
    static func owner(of partition: Int, _ number: Int = 0) -> SyncID {
        let partitioning = Partitioning(count: partitions)
        return (0...).lazy.map { SyncID(unchecked: "owner-\(number)-\($0)") }
            .first { partitioning.partition(of: $0) == partition }!
    }

    /// An address that no other test and no connection of the system uses, so that a server can be restarted there.
    static func ownAddress() -> NetworkAddress {
        let number = addresses.wrappingAdd(1, ordering: .relaxed).newValue
        let process = UInt32(truncatingIfNeeded: getpid())
        return NetworkAddress(host: "127.\(64 + number % 128).\(process >> 8 & 255).\(process & 254 | 1)", port: 0)!
    }

    private static let addresses = Atomic<UInt32>(0)

    static let device = KnowledgeID(unchecked: "phone")

    static func rows(_ timeStamps: ClosedRange<Int>) -> [ScriptedFanOut.Row] {
        timeStamps.map {
            ScriptedFanOut.Row(device: device, timeStamp: TimeStamp(Int64($0)), json: Array("{\"t\":\($0)}".utf8))
        }
    }

    static func part(of owner: SyncID, _ offset: Int64 = 1) -> PartReference {
        PartReference(
            upload: UploadReference(partition: 0, offset: offset), part: 0,
            key: DeviceKey(owner: owner, device: Device(caller: owner, knowledgeID: device)), batch: 1)
    }

    static func pull(_ owners: [SyncID], limit: Int = 100, bytes: Int = 100_000) -> PagePull {
        PagePull(
            owners: owners.map { OwnerPull(owner: $0, knowledge: OwnerKnowledge()) }, limit: limit, maximumBytes: bytes)
    }
}

import DeviceRegistry
import FanOutLink
import HTTP
import SyncModel

/// `/v1/devices`: a caller's devices are listed, named, revoked and allowed again.
extension GatewayHandler {
    // MARK: What requests show of a device

    /// Refuses a revoked device.
    func checkRevoked(_ device: Device) throws(Problem) {
        guard let devices, devices.isRevoked(device) else { return }
        throw Problem(.deviceRevoked, "this device was revoked: nothing of it is accepted, and it gets nothing")
    }

    /// Refuses a revoked device, and notes that another one was seen.
    func admit(_ device: Device, of caller: Caller, _ envelope: Envelope? = nil) throws(Problem) {
        try checkRevoked(device)
        guard let devices else { return }
        tracker?.add(
            DeviceSighting(
                device, at: devices.now(), isUpload: envelope?.isUpload ?? false,
                description: envelope?.description ?? DeviceDescription(),
                knowledge: envelope.flatMap { Self.positions(of: caller, $0.knowledge) }))
    }

    /// Up to which timeStamp a vector holds the rows of each owner; `nil` for an empty one.
    private static func positions(of caller: Caller, _ knowledge: KnowledgeVector) -> [SyncID: TimeStamp]? {
        if knowledge.owners.isEmpty { return nil }
        var positions: [SyncID: TimeStamp] = [:]
        // The caller's own is the first of its grants.
        for grant in caller.grants {
            guard let held = knowledge.owners[grant.owner] else { continue }
            positions[grant.owner] = held.highest
            if positions.count == DeviceSighting.maximumOwners { break }
        }
        return positions
    }

    /// Writes what was seen of devices, once in every `deviceInterval`, until the task is cancelled.
    func writeDevices() async {
        guard let tracker else { return }
        var next = clock.now()
        while true {
            next += configuration.deviceInterval
            do { try await clock.sleep(next) } catch { return }
            await tracker.write()
        }
    }

    // MARK: Requests

    /// `GET /v1/devices`: a page of them.
    func listDevices(_ request: HTTPRequest, _ caller: Caller) throws(Problem) -> HTTPHandlerResult {
        let (devices, tracker) = try requireDevices()
        let query = try DevicePageQuery(request)
        return inTask {
            try await Self.translating { () async throws(DeviceRegistryError) in
                try await tracker.write(devicesOf: caller.syncID)
            }
            let found = try await Self.translating { () async throws(DeviceRegistryError) in
                try await devices.registry.devices(of: caller.syncID, after: query.after, limit: query.limit + 1)
            }
            let page = DevicePage(
                of: caller.syncID, found: found, revoked: Set(devices.revoked(caller.syncID).map(\.knowledgeID)),
                head: await self.head(of: caller.syncID), query)
            return .uncached(200, page.json)
        }
    }

    /// `PATCH /v1/devices/{knowledgeId}`: names it, revokes it or allows it again; and `DELETE`, which revokes it, whether it was ever
    /// seen or not.
    ///
    /// A decision counts as the largest batch does in the limits of a rate: `control` keeps it for ever.
    func changeDevice(_ request: HTTPRequest, _ caller: Caller) throws(Problem) -> HTTPHandlerResult {
        let (devices, tracker) = try requireDevices()
        let (device, change) = try counting(caller) { () throws(Problem) in
            let device = Device(caller: caller.syncID, knowledgeID: try KnowledgeID(named: request.segments[2]))
            if request.method == .delete { return (device, DeviceChange.revocation) }
            try Self.checkMediaType(request)
            return (device, try parseDeviceChange(request.body))
        }
        let cost = change.isRevoked == nil ? .request : RateCost(changes: limits.outcome.maxChanges)
        let status = try rates.take(cost, of: caller.syncID)
        return inTask {
            if request.method == .delete {
                try await self.decide(DeviceDecision(device, isRevoked: true))
                return HTTPResponse(status: 204, headers: [HTTPField("Cache-Control", "no-store")])
            }
            try await Self.translating { () async throws(DeviceRegistryError) in
                try await tracker.write(devicesOf: caller.syncID)
            }
            if let name = change.name {
                let isKnown = try await Self.translating { () async throws(DeviceRegistryError) in
                    try await devices.registry.rename(device, to: name)
                }
                guard isKnown else { throw Problem(.notFound, "this device was never seen, so it has no name") }
            }
            if let isRevoked = change.isRevoked { try await self.decide(DeviceDecision(device, isRevoked: isRevoked)) }
            let found = try await Self.translating { () async throws(DeviceRegistryError) in
                try await devices.registry.device(device)
            }
            let page = DevicePage(
                of: caller.syncID, found: found.map { [$0] } ?? [],
                revoked: devices.isRevoked(device) ? [device.knowledgeID] : [], head: await self.head(of: caller.syncID)
            )
            return .uncached(200, page.json(of: device.knowledgeID))
        }.adding(status)
    }

    /// Ends the long polls of devices that are revoked now, and the event streams whose credentials are for one.
    package func devicesChanged() {
        polls.wake()
        if let devices { eventStreams.end(where: devices.isRevoked) }
    }

    private func decide(_ decision: DeviceDecision) async throws(Problem) {
        guard let devices, devices.isRevoked(decision.device) != decision.isRevoked else { return }
        // Each is kept in memory by every gateway, for ever.
        if decision.isRevoked, devices.revoked(decision.device.caller).count >= configuration.maxDevices {
            throw Problem(.forbidden, "at most \(configuration.maxDevices) devices may be revoked at a time")
        }
        do {
            try await devices.decide(decision)
        } catch {
            throw Problem(.notReady, "the decision cannot be written to the log at the moment")
        }
    }

    private func requireDevices() throws(Problem) -> (GatewayDevices, DeviceTracker) {
        guard let devices, let tracker else { throw Problem(.notReady, "this gateway has no registry of devices") }
        return (devices, tracker)
    }

    /// The newest timeStamp of an owner; `nil` while its stream cannot be read.
    private func head(of owner: SyncID) async -> TimeStamp? {
        do { return try await link.heads(of: [owner]).first } catch { return nil }
    }

    private static func translating<Value>(
        _ body: () async throws(DeviceRegistryError) -> Value
    ) async throws(Problem) -> Value {
        do throws(DeviceRegistryError) {
            return try await body()
        } catch {
            throw Problem(.notReady, "the registry of devices cannot be read or written at the moment")
        }
    }
}

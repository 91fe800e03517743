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

    /// Notes that a device was seen.
    func note(_ device: Device, of caller: Caller, _ envelope: Envelope? = nil) {
        guard let devices else { return }
        tracker?.add(
            DeviceSighting(
                device, at: devices.now(), isUpload: envelope?.isUpload ?? false,
                description: envelope?.description ?? DeviceDescription(),
                knowledge: envelope.flatMap { Self.positions(of: caller, $0.knowledge) }))
    }

    /// Notes that a device uploads.
    func noteUpload(_ device: Device) {
        guard let devices else { return }
        tracker?.add(DeviceSighting(device, at: devices.now(), isUpload: true))
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
        if devices == nil { return }
        var next = clock.now()
        while true {
            next += configuration.deviceInterval
            do { try await clock.sleep(next) } catch { return }
            await writeDevicesNow()
        }
    }

    /// Writes what was seen of devices since the last call, first the positions: the registry removes those of the devices that it
    /// forgets.
    func writeDevicesNow() async {
        await positions?.write()
        await tracker?.write()
    }

    /// Writes what was seen of a caller's devices, so that it can be read, in the same order.
    func writeDevices(of caller: SyncID) async throws(DeviceRegistryError) {
        try await positions?.write(devicesOf: caller)
        try await tracker?.write(devicesOf: caller)
    }

    // MARK: Requests

    /// `GET /v1/devices`: a page of them.
    func listDevices(_ request: HTTPRequest, _ caller: Caller) throws(Problem) -> HTTPHandlerResult {
        let devices = try requireDevices()
        let query = try DevicePageQuery(request)
        return inTask {
            try await Self.translating { () async throws(DeviceRegistryError) in
                try await self.writeDevices(of: caller.syncID)
            }
            let found = try await Self.translating { () async throws(DeviceRegistryError) in
                try await devices.registry.devices(of: caller.syncID, after: query.after, limit: query.limit + 1)
            }
            let page = DevicePage(
                of: caller.syncID, found: found, revoked: devices.revoked(caller.syncID),
                head: await self.head(of: caller.syncID), query)
            return try await self.reserving(.uncached(200, page.json), for: caller)
        }
    }

    /// `PATCH /v1/devices/{knowledgeId}`: names it.
    func nameDevice(_ request: HTTPRequest, _ caller: Caller) throws(Problem) -> HTTPHandlerResult {
        let devices = try requireDevices()
        let (device, name) = try counting(caller) { () throws(Problem) in
            try Self.checkMediaType(request)
            return (try Self.device(in: request, of: caller), try parsers.parse(request.body, DeviceName.init).name)
        }
        let status = try rates.take(.request, of: caller.syncID)
        return inTask {
            let found = try await Self.translating { () async throws(DeviceRegistryError) in
                try await self.writeDevices(of: caller.syncID)
                guard try await devices.registry.rename(device, to: name) else { return nil as RegisteredDevice? }
                return try await devices.registry.device(device)
            }
            guard let found else { throw Problem(.notFound, "this device was never seen, so it has no name") }
            let page = DevicePage(
                of: caller.syncID, found: [found], revoked: devices.isRevoked(device) ? [device.knowledgeID] : [],
                head: await self.head(of: caller.syncID))
            return .uncached(200, page.json(of: device.knowledgeID))
        }.adding(status)
    }

    /// `DELETE /v1/devices/{knowledgeId}`: revokes it, whether it was ever seen or not.
    func revokeDevice(_ request: HTTPRequest, _ caller: Caller) throws(Problem) -> HTTPHandlerResult {
        let devices = try requireDevices()
        let device = try counting(caller) { () throws(Problem) in try Self.device(in: request, of: caller) }
        let status = try rates.take(.request, of: caller.syncID)
        // Each is kept in `control` and in the memory of every gateway.
        guard devices.isRevoked(device) || devices.revoked(caller.syncID).count < Self.maximumRevoked else {
            throw Problem(.forbidden, "at most \(Self.maximumRevoked) devices may be revoked")
        }
        return inTask {
            do {
                try await devices.revoke(device)
            } catch {
                throw Problem(.notReady, "the revocation cannot be written to the log at the moment")
            }
            return HTTPResponse(status: 204, headers: [HTTPField("Cache-Control", "no-store")])
        }.adding(status)
    }

    /// The devices that a caller may revoke.
    static var maximumRevoked: Int { 1000 }

    private static func device(in request: HTTPRequest, of caller: Caller) throws(Problem) -> Device {
        let knowledgeID = try KnowledgeID(named: request.segments[2])
        try caller.checkManages(knowledgeID)
        return Device(caller: caller.syncID, knowledgeID: knowledgeID)
    }

    /// Ends the long polls of devices that are revoked now, and the event streams whose credentials are for one.
    package func devicesChanged() {
        guard let devices else { return }
        polls.wake(where: devices.isRevoked)
        eventStreams.end(where: devices.isRevoked)
    }

    private func requireDevices() throws(Problem) -> GatewayDevices {
        guard let devices else { throw Problem(.notReady, "this gateway has no registry of devices") }
        return devices
    }

    /// The newest timeStamp of an owner; `nil` while its stream cannot be read.
    private func head(of owner: SyncID) async -> TimeStamp? {
        do { return try await link.heads(of: [owner]).first } catch { return nil }
    }

    static func translating<Value>(
        _ body: () async throws(DeviceRegistryError) -> Value
    ) async throws(Problem) -> Value {
        do throws(DeviceRegistryError) {
            return try await body()
        } catch {
            throw Problem(.notReady, "the registry of devices cannot be read or written at the moment")
        }
    }
}

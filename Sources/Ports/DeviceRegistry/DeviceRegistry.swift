import SyncModel

/// What is known of devices: when they were seen, what they hold, what they say of themselves (seed: device tracker).
///
/// Gateways write it seldom and many devices at once; it may lose the last minute, and nothing else depends on it. Whether a device
/// is revoked is not in it, but in `control`.
package protocol DeviceRegistry: Sendable {
    /// Whether other processes write it, too.
    var isShared: Bool { get }

    /// Adds what was seen; in any order, also again after an error, which may concern a part of it.
    ///
    /// - Parameter sightings: at most one of each device.
    func record(_ sightings: [DeviceSighting]) async throws(DeviceRegistryError)

    /// A caller's devices in the order of their knowledgeIds' bytes.
    ///
    /// - Parameters:
    ///   - last: the device after which they begin; `nil`: with the first.
    ///   - limit: how many at most.
    func devices(
        of caller: SyncID, after last: KnowledgeID?, limit: Int
    ) async throws(DeviceRegistryError) -> [RegisteredDevice]

    /// One device; `nil` if it was never seen.
    func device(_ device: Device) async throws(DeviceRegistryError) -> RegisteredDevice?

    /// Gives a device a name that counts before the one that it reports; `nil` takes it back.
    ///
    /// - Returns: false if the device was never seen.
    func rename(_ device: Device, to name: String?) async throws(DeviceRegistryError) -> Bool

    /// The positions of a device by name; empty if it has none.
    func positions(of device: Device) async throws(DeviceRegistryError) -> [String: Int64]

    /// Raises positions; one that is not above what is stored changes nothing.
    ///
    /// In any order, also again after an error, which may concern a part of them. They are kept as long as the device is known, and
    /// for a device that was not seen yet.
    ///
    /// - Parameter positions: at most one of each name of a device.
    func raise(_ positions: [DevicePosition]) async throws(DeviceRegistryError)

    func close() async
}

/// A number that only rises, which gateways keep of a device: up to where it has what it was sent, for example.
package struct DevicePosition: Sendable, Hashable {
    package let device: Device
    /// At most ``maximumNameLength`` bytes.
    package let name: String
    package let value: Int64

    package static let maximumNameLength = 255

    package init(_ device: Device, name: String, _ value: Int64) {
        self.device = device
        self.name = name
        self.value = value
    }
}

/// What a device says of itself.
package struct DeviceDescription: Sendable, Hashable {
    /// The size of each text.
    package static let maximumLength = 255

    package var name: String?
    /// As `Android 17`.
    package var platform: String?
    package var appVersion: String?

    package init(name: String? = nil, platform: String? = nil, appVersion: String? = nil) {
        self.name = name
        self.platform = platform
        self.appVersion = appVersion
    }

    /// Takes over what a later description says.
    package mutating func merge(_ later: DeviceDescription) {
        name = later.name ?? name
        platform = later.platform ?? platform
        appVersion = later.appVersion ?? appVersion
    }
}

/// One or more requests of a device.
///
/// Times are microseconds since 1970 by the gateway's clock.
package struct DeviceSighting: Sendable, Hashable {
    /// The owners whose entries are kept, the caller first; a vector may name more.
    package static let maximumOwners = 16

    package let device: Device
    package var firstSeen: Int64
    package var lastSeen: Int64
    package var lastUpload: Int64?
    package var description: DeviceDescription
    /// Up to which timeStamp the device has shown to hold each owner's rows: the greatest of its vector's entries; `nil` where no
    /// request had a vector.
    package var knowledge: [SyncID: TimeStamp]?

    package init(
        _ device: Device, at time: Int64, isUpload: Bool = false, description: DeviceDescription = DeviceDescription(),
        knowledge: [SyncID: TimeStamp]? = nil
    ) {
        self.device = device
        firstSeen = time
        lastSeen = time
        lastUpload = isUpload ? time : nil
        self.description = description
        self.knowledge = knowledge
    }

    /// About the bytes that it takes in memory, in a table of sightings.
    package var memory: Int {
        var bytes = 400 + 2 * (device.caller.text.utf8.count + device.knowledgeID.text.utf8.count)
        bytes += description.name?.utf8.count ?? 0
        bytes += description.platform?.utf8.count ?? 0
        bytes += description.appVersion?.utf8.count ?? 0
        for owner in knowledge?.keys ?? [:].keys { bytes += owner.text.utf8.count + 64 }
        return bytes
    }

    package func merged(with later: DeviceSighting) -> DeviceSighting {
        var merged = self
        merged.merge(later)
        return merged
    }

    /// Takes over what a later sighting of the device says.
    package mutating func merge(_ later: DeviceSighting) {
        firstSeen = min(firstSeen, later.firstSeen)
        lastSeen = max(lastSeen, later.lastSeen)
        lastUpload = later.lastUpload ?? lastUpload
        description.merge(later.description)
        knowledge = later.knowledge ?? knowledge
    }
}

/// A device as the registry has it.
package struct RegisteredDevice: Sendable, Hashable {
    package let knowledgeID: KnowledgeID
    /// The name that the owner gave it; `nil`: the one that it reports.
    package var givenName: String?
    package var description: DeviceDescription
    /// Microseconds since 1970, as the following.
    package var firstSeen: Int64
    package var lastSeen: Int64
    package var lastUpload: Int64?
    /// As in ``DeviceSighting/knowledge``; empty until the device has sent a vector.
    package var knowledge: [SyncID: TimeStamp]

    package init(
        _ knowledgeID: KnowledgeID, givenName: String? = nil, description: DeviceDescription, firstSeen: Int64,
        lastSeen: Int64, lastUpload: Int64?, knowledge: [SyncID: TimeStamp]
    ) {
        self.knowledgeID = knowledgeID
        self.givenName = givenName
        self.description = description
        self.firstSeen = firstSeen
        self.lastSeen = lastSeen
        self.lastUpload = lastUpload
        self.knowledge = knowledge
    }

    package var name: String? { givenName ?? description.name }
}

/// The registry cannot be read or written now.
package struct DeviceRegistryError: Error, Sendable, Hashable, CustomStringConvertible {
    /// For operators.
    package let message: String

    package init(_ message: String) { self.message = message }

    package var description: String { message }
}

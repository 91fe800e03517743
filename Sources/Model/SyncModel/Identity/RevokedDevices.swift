/// A decision, in `control`, whether a device may send requests.
package struct DeviceDecision: Sendable, Hashable {
    package let device: Device
    /// Whether every request of the device is refused from now on.
    package let isRevoked: Bool

    package init(_ device: Device, isRevoked: Bool) {
        self.device = device
        self.isRevoked = isRevoked
    }
}

/// The devices that are revoked, by the decisions of `control` in their order.
package struct RevokedDevices: Sendable, Hashable {
    package private(set) var devices: [SyncID: Set<KnowledgeID>] = [:]
    /// How many decisions there were.
    package private(set) var decisions = 0

    package init() {}

    package func contains(_ device: Device) -> Bool { devices[device.caller]?.contains(device.knowledgeID) == true }

    /// Adds a decision; of several about one device the last counts.
    package mutating func append(_ decision: DeviceDecision) {
        decisions += 1
        let device = decision.device
        if decision.isRevoked {
            devices[device.caller, default: []].insert(device.knowledgeID)
        } else {
            devices[device.caller]?.remove(device.knowledgeID)
            if devices[device.caller]?.isEmpty == true { devices[device.caller] = nil }
        }
    }
}

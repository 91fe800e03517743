/// An owner's decision, in `control`, whether a device of it may send requests.
package struct DeviceDecision: Sendable, Hashable {
    package let device: Device
    /// Whether every request of the device is refused from now on.
    package let isRevoked: Bool

    package init(_ device: Device, isRevoked: Bool) {
        self.device = device
        self.isRevoked = isRevoked
    }
}

/// The devices that their owners have revoked, by the decisions of `control` in their order.
package struct RevokedDevices: Sendable, Hashable {
    package private(set) var devices: Set<Device> = []
    /// How many decisions there were.
    package private(set) var decisions = 0

    package init() {}

    /// Adds a decision; of several about one device the last counts.
    package mutating func append(_ decision: DeviceDecision) {
        decisions += 1
        if decision.isRevoked { devices.insert(decision.device) } else { devices.remove(decision.device) }
    }
}

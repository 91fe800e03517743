import SyncModel
import Synchronization

/// The devices that are revoked, as this process knows them now.
///
/// Asked with every request, so a process without any revoked device looks at one number.
package final class DeviceRevocations: Sendable {
    private struct State {
        var revoked: RevokedDevices
        var handler: (@Sendable () -> Void)?
    }

    private let state: Mutex<State>
    private let count: Atomic<Int>

    init(_ revoked: RevokedDevices) {
        state = Mutex(State(revoked: revoked))
        count = Atomic(revoked.devices.count)
    }

    package func contains(_ device: Device) -> Bool {
        count.load(ordering: .relaxed) > 0 && state.withLock { $0.revoked.contains(device) }
    }

    /// All revoked devices.
    package var all: [Device] {
        state.withLock { $0.revoked.devices }.flatMap { caller, ids in
            ids.map { Device(caller: caller, knowledgeID: $0) }
        }
    }

    /// The revoked devices of a caller.
    package func devices(of caller: SyncID) -> Set<KnowledgeID> {
        count.load(ordering: .relaxed) == 0 ? [] : state.withLock { $0.revoked.devices[caller] ?? [] }
    }

    /// Sets what is called after each change; it must not block.
    package func onChange(_ handler: @escaping @Sendable () -> Void) { state.withLock { $0.handler = handler } }

    /// - Parameter revoked: without effect where it has no more decisions than are known.
    func learn(_ revoked: RevokedDevices) {
        let handler: (@Sendable () -> Void)? = state.withLock { state in
            guard revoked.decisions > state.revoked.decisions else { return nil }
            state.revoked = revoked
            count.store(revoked.devices.count, ordering: .relaxed)
            return state.handler
        }
        handler?()
    }
}

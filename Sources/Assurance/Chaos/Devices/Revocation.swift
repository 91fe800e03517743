import LoadTools
import Synchronization

/// The revocation of a device, before any fault, and what the gateways answered it afterwards.
final class Revocation: Sendable {
    /// Seconds after which no gateway accepts a request of the device.
    static let limit = 2.0

    private struct State {
        /// Whether the request to revoke it was sent.
        var isRequested = false
        /// When the answer to it came, in nanoseconds.
        var answered: Int64?
        /// How long after it the last request was sent that was accepted.
        var lastAccepted = 0.0
        /// The gateways that refused a request.
        var refusing: Set<Int> = []
        var hasEnded = false
    }

    private let state = Mutex(State())

    /// The device sends nothing more.
    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    /// How long after the revocation the last request was sent that was accepted.
    var lastAccepted: Double { state.withLock { $0.lastAccepted } }

    func requested() { state.withLock { $0.isRequested = true } }

    func answered() {
        let now = SystemCall.nanoseconds()
        state.withLock { $0.answered = now }
    }

    /// Ends the device.
    ///
    /// - Returns: how many gateways refused it.
    func end() -> Int {
        state.withLock { state in
            state.hasEnded = true
            return state.refusing.count
        }
    }

    /// Takes an answer to the device.
    ///
    /// - Parameter sent: when the request was sent.
    /// - Returns: what is wrong with it.
    func judge(_ response: GatewayClient.Response, from gateway: Int, sent: Int64) -> String? {
        let isRefusal = response.hasCode("device_revoked")
        return state.withLock { state in
            if isRefusal {
                state.refusing.insert(gateway)
                return state.isRequested ? nil : "is refused before it is revoked"
            }
            guard [200, 202].contains(response.status), let answered = state.answered, sent > answered else {
                return nil
            }
            state.lastAccepted = max(state.lastAccepted, Double(sent - answered) / 1e9)
            return state.lastAccepted > Self.limit
                ? "is accepted by gateway \(gateway + 1) \(state.lastAccepted) s after it was revoked" : nil
        }
    }
}

import SyncModel
import Synchronization

/// Limits the bytes of uploads in flight (I10), of all callers and of each caller.
final class UploadQuota: Sendable {
    private struct State {
        var bytes = 0
        /// Callers with an upload in flight.
        var callers: [SyncID: Usage] = [:]
    }

    private struct Usage {
        var uploads = 0
        var bytes = 0
    }

    private let maximumBytes: Int
    private let maximumBytesOfCaller: Int
    private let state = Mutex(State())

    /// - Parameters:
    ///   - maximumBytes: of all uploads in flight.
    ///   - maximumBytesOfCaller: of one caller's uploads in flight.
    init(maximumBytes: Int, maximumBytesOfCaller: Int) {
        self.maximumBytes = maximumBytes
        self.maximumBytesOfCaller = maximumBytesOfCaller
    }

    /// Reserves an upload until ``leave(_:bytes:)``; one upload is always accepted, whatever its size.
    func enter(_ caller: SyncID, bytes: Int) throws(Problem) {
        let problem: Problem? = state.withLock { state in
            guard state.bytes == 0 || state.bytes + bytes <= maximumBytes else {
                return Problem(.overloaded, "the uploads in flight have reached their limit of \(maximumBytes) bytes")
            }
            var usage = state.callers[caller] ?? Usage()
            guard usage.bytes == 0 || usage.bytes + bytes <= maximumBytesOfCaller else {
                return Problem(
                    .rateLimited,
                    "\(usage.bytes) bytes of this caller are in flight, at most \(maximumBytesOfCaller) are allowed")
            }
            usage.uploads += 1
            usage.bytes += bytes
            state.bytes += bytes
            state.callers[caller] = usage
            return nil
        }
        if let problem { throw problem }
    }

    func leave(_ caller: SyncID, bytes: Int) {
        state.withLock { state in
            state.bytes -= bytes
            guard var usage = state.callers[caller] else { return }
            usage.uploads -= 1
            usage.bytes -= bytes
            state.callers[caller] = usage.uploads == 0 ? nil : usage
        }
    }

    /// The bytes of all uploads in flight.
    var bytes: Int { state.withLock { $0.bytes } }

    /// The callers with an upload in flight.
    var callerCount: Int { state.withLock { $0.callers.count } }
}

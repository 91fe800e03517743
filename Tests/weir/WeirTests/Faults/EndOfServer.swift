import Foundation
import Synchronization
import Testing

/// Counts what devices do and ends the server at a moment that the seed chose: by the count, never by time.
final class EndOfServer: Sendable {
    private let weir: WeirProcess
    private let count = Mutex(0)
    private let moment: Int
    private let isClean: Bool

    /// Ends a server at the `moment`-th request or answer; asks it to stop where the end is clean, else kills it.
    init(of weir: WeirProcess, at moment: Int, isClean: Bool = false) {
        self.weir = weir
        self.moment = moment
        self.isClean = isClean
    }

    /// A request is about to be sent, or an answer has come.
    func note() async {
        let isNow = count.withLock { count in
            count += 1
            return count == moment
        }
        guard isNow else { return }
        let status = isClean ? await weir.stop() : await weir.kill()
        #expect(status == (isClean ? 0 : SIGKILL))
    }

    /// Whether a failure is what the end of the server comes to.
    func explains(_ failure: DeviceClient.Failure) -> Bool {
        // One that was asked to stop may still say so.
        failure.status == nil || (isClean && failure.status == 503)
    }
}

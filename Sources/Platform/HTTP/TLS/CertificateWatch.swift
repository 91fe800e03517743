import Glibc
import Synchronization
import ThreadExecutor

/// A thread that reads a server's certificate again every few seconds, and when it is asked to.
///
/// It compares the files' content: a secret that is mounted in a container is replaced by changing a symbolic link above it, which no notification
/// of the file reports.
final class CertificateWatch: Sendable {
    private struct State {
        var isStopping = false
        /// One for each call of `stop`.
        var waiting: [CheckedContinuation<Void, Never>] = []
        var hasEnded = false
    }

    private let certificate: TLSCertificate
    private let interval: Duration
    private let report: @Sendable (HTTPServerEvent) -> Void
    private let event: Descriptor
    private let state = Mutex(State())

    init(
        _ certificate: TLSCertificate, every interval: Duration, report: @escaping @Sendable (HTTPServerEvent) -> Void
    ) throws(HTTPServerError) {
        self.certificate = certificate
        self.interval = interval
        self.report = report
        event = try Descriptor.event()
    }

    func start() throws(HTTPServerError) {
        let code = startDetachedThread(stackSize: 1 << 20) { self.run() }
        guard code == 0 else { throw .cannotStart(reason: HTTPServerError.text(code)) }
    }

    /// Has the thread read the files now.
    func check() { event.signal() }

    /// Returns when the thread has ended.
    func stop() async {
        await withCheckedContinuation { done in
            let hasEnded = state.withLock { state in
                state.isStopping = true
                if !state.hasEnded { state.waiting.append(done) }
                return state.hasEnded
            }
            if hasEnded { done.resume() } else { event.signal() }
        }
    }

    private func run() {
        let milliseconds = Int32(clamping: max(1, interval.nanoseconds / 1_000_000))
        while true {
            var descriptor = pollfd(fd: event.number, events: Int16(POLLIN), revents: 0)
            // An interrupted wait checks early.
            _ = poll(&descriptor, 1, milliseconds)
            event.clear()
            if state.withLock({ $0.isStopping }) { break }
            if let event = certificate.reload() { report(event) }
        }
        let waiting = state.withLock { state in
            state.hasEnded = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for done in waiting { done.resume() }
    }
}

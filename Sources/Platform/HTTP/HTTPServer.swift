import Glibc
import Synchronization

/// A server of HTTP/1.0 and 1.1, plain or with TLS.
///
/// Start it once, stop it once: `stopAccepting` turns new clients away while the others are still served, `stop` ends
/// everything. Between the two the application ends its streams.
package final class HTTPServer: Sendable {
    private enum Phase {
        case fresh
        case running(ServerCore)
        /// With the core for its counters.
        case stopped(ServerCore)
    }

    private let configuration: HTTPServerConfiguration
    private let handler: any HTTPHandler
    private let phase = Mutex(Phase.fresh)

    /// Makes a server that listens to nothing yet.
    package init(configuration: HTTPServerConfiguration, handler: any HTTPHandler) {
        self.configuration = configuration
        self.handler = handler
    }

    deinit {
        phase.withLock { phase in
            if case .running = phase { assertionFailure("a server that was started is stopped before it is let go") }
        }
    }

    /// Binds the address, reads the certificate and serves.
    ///
    /// Returns the address bound, with the port that the system chose where 0 was asked for. Reads files and may look
    /// up a name: not for the cooperative pool's hot paths.
    package func start() throws(HTTPServerError) -> HTTPPeer {
        try phase.withLock { phase throws(HTTPServerError) in
            guard case .fresh = phase else { throw .alreadyStarted }
            try configuration.validate()
            let certificate: Library.Certificate? =
                if let tls = configuration.tls {
                    Library.Certificate(
                        certificate: try FileBytes.read(tls.certificate), key: try FileBytes.read(tls.key))
                } else {
                    nil
                }
            let listener = try Listener(host: configuration.host, port: configuration.port)
            let address = listener.address
            let core = ServerCore(configuration: configuration, handler: handler, supervisor: try Supervisor())
            DescriptorLimit.raise(for: configuration.maxConnections, report: core.report)
            let library = try Library(core, certificate: certificate)
            let thread = SupervisorThread(core: core, listener: listener, library: library)
            try OwnThread.start { thread.run() }
            phase = .running(core)
            return address
        }
    }

    /// Takes no new connections from the moment it returns, and ends those that are idle; requests under way are served
    /// and their connections end with the answer.
    ///
    /// A client that sends a request just then may see the connection end without an answer, as HTTP allows at any time
    /// between requests.
    package func stopAccepting() async {
        guard let core = running() else { return }
        await withCheckedContinuation { done in
            if !core.supervisor.tell(.drain(done)) { done.resume() }
        }
    }

    /// Stops accepting, waits for the requests under way (streams included) no longer than `patience`, then cancels the
    /// tasks that still make answers and closes every connection.
    ///
    /// When it returns, no thread of the server runs any more; cancelled tasks may, and what they return is dropped.
    package func stop(patience: Duration) async {
        guard let core = running() else { return }
        let (deadline, isBeyondTime) = MonotonicTime.now().addingReportingOverflow(patience.nanoseconds)
        await withCheckedContinuation { done in
            if !core.supervisor.tell(.stop(isBeyondTime ? UInt64.max : deadline, done)) { done.resume() }
        }
        phase.withLock { $0 = .stopped(core) }
    }

    /// What the server has done and holds now; all zero before the start.
    package var counters: HTTPServerCounters {
        let core: ServerCore? = phase.withLock { phase in
            switch phase {
            case .fresh: nil
            case .running(let core), .stopped(let core): core
            }
        }
        guard let core else { return HTTPServerCounters() }
        var counters = core.counters.snapshot(
            connections: core.table.count, bytesInFlight: core.budget.inFlight)
        counters.answerBytesInFlight = core.answers.inFlight
        return counters
    }

    private func running() -> ServerCore? {
        phase.withLock { phase in
            if case .running(let core) = phase { core } else { nil }
        }
    }
}

import Glibc
import Synchronization
import ThreadExecutor

/// A server for HTTP/1.0 and 1.1, with or without TLS.
///
/// Start it once, stop it once: `stopAccepting` rejects new connections while others are still served, `stop` closes
/// everything. Between the two the application ends its streams.
package final class HTTPServer: Sendable {
    private enum Phase {
        case fresh
        case running(ServerCore, CertificateWatch?)
        case stopped(ServerCore)
    }

    private let configuration: HTTPServerConfiguration
    private let handler: any HTTPHandler
    private let responseBudget: ResponseBudget
    private let phase = Mutex(Phase.fresh)

    /// - Parameter responseBudget: in which the handler reserves its large responses; by default one of
    ///   ``HTTPServerConfiguration/maxAnswerBytesInFlight``.
    package init(
        configuration: HTTPServerConfiguration, handler: any HTTPHandler, responseBudget: ResponseBudget? = nil
    ) {
        self.configuration = configuration
        self.handler = handler
        self.responseBudget = responseBudget ?? ResponseBudget(limit: configuration.maxAnswerBytesInFlight)
    }

    deinit {
        phase.withLock { phase in
            if case .running = phase { assertionFailure("a started server must be stopped before it is released") }
        }
    }

    /// Reads the certificate, binds the address and starts to serve.
    ///
    /// Blocks to read files and to resolve a host name.
    ///
    /// - Returns: the bound address; for port 0, with the port that the system chose.
    package func start() throws(HTTPServerError) -> HTTPPeer {
        try phase.withLock { phase throws(HTTPServerError) in
            guard case .fresh = phase else { throw .alreadyStarted }
            try configuration.validate()
            let certificate: TLSCertificate? =
                if let tls = configuration.tls { try TLSCertificate(tls) } else { nil }
            let listener = try Listener(host: configuration.host, port: configuration.port)
            let address = listener.address
            let core = try makeCore(certificate)
            let watch: CertificateWatch?
            do throws(HTTPServerError) {
                watch = try startWatch(certificate)
            } catch {
                Task { await core.turns.close() }
                throw error
            }
            do throws(HTTPServerError) {
                try serve(core, listener)
            } catch {
                Task {
                    await watch?.stop()
                    await core.turns.close()
                }
                throw error
            }
            phase = .running(core, watch)
            return address
        }
    }

    private func makeCore(_ certificate: TLSCertificate?) throws(HTTPServerError) -> ServerCore {
        let eventLoop = try EventLoop()
        do throws(ThreadStartError) {
            return try ServerCore(
                configuration: configuration, handler: handler, responseBudget: responseBudget, eventLoop: eventLoop,
                certificate: certificate)
        } catch {
            throw .cannotStart(reason: error.description)
        }
    }

    private func startWatch(_ certificate: TLSCertificate?) throws(HTTPServerError) -> CertificateWatch? {
        guard let certificate else { return nil }
        let watch = try CertificateWatch(
            certificate, every: configuration.certificateInterval, report: configuration.onEvent)
        try watch.start()
        return watch
    }

    private func serve(_ core: ServerCore, _ listener: consuming Listener) throws(HTTPServerError) {
        DescriptorLimit.raise(for: configuration.maxConnections, report: core.report)
        let daemon = try MicrohttpdDaemon(core)
        let thread = EventLoopThread(core: core, listener: listener, daemon: daemon)
        // The stack is larger than an application's event handlers need.
        let code = startDetachedThread(stackSize: 2 << 20) { thread.run() }
        guard code == 0 else { throw .cannotStart(reason: HTTPServerError.text(code)) }
    }

    /// Has the server read its certificate again at once; returns before it has.
    package func checkCertificate() {
        phase.withLock { phase in
            if case .running(_, let watch) = phase { watch?.check() }
        }
    }

    /// Stops accepting connections and closes the idle ones; requests in progress are served, and their responses close
    /// their connections.
    ///
    /// A client that sends a request at the same time may get no response, as HTTP allows for every idle connection.
    package func stopAccepting() async {
        guard let core = running() else { return }
        await withCheckedContinuation { done in
            if !core.eventLoop.send(.drain(done)) { done.resume() }
        }
    }

    /// Stops accepting, waits up to `patience` for requests in progress, including streams, then cancels the remaining
    /// tasks of handlers and closes every connection.
    ///
    /// When it returns, all threads of the server have ended. Cancelled tasks may still run; their responses are
    /// dropped.
    package func stop(patience: Duration) async {
        guard let core = running() else { return }
        let watch = phase.withLock { phase -> CertificateWatch? in
            if case .running(_, let watch) = phase { watch } else { nil }
        }
        await watch?.stop()
        let (deadline, isOverflow) = MonotonicTime.now().addingReportingOverflow(patience.nanoseconds)
        await withCheckedContinuation { done in
            if !core.eventLoop.send(.stop(isOverflow ? UInt64.max : deadline, done)) { done.resume() }
        }
        await core.turns.close()
        phase.withLock { $0 = .stopped(core) }
    }

    /// All zero before the start.
    package var counters: HTTPServerCounters {
        let core: ServerCore? = phase.withLock { phase in
            switch phase {
            case .fresh: nil
            case .running(let core, _), .stopped(let core): core
            }
        }
        guard let core else { return HTTPServerCounters() }
        var counters = core.counters.snapshot(
            connections: core.table.count, bytesInFlight: core.bodyBudget.inFlight,
            answerBytesInFlight: core.responseBudget.inFlight)
        if let certificate = core.certificate {
            (counters.certificateLoads, counters.certificateFailures) = certificate.counts
            counters.certificateExpiration = certificate.credentials.expiration
        }
        return counters
    }

    private func running() -> ServerCore? {
        phase.withLock { phase in
            if case .running(let core, _) = phase { core } else { nil }
        }
    }
}

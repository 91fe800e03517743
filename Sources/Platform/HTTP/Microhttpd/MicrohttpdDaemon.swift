import CMicrohttpd
import Glibc
import Synchronization

/// A running libmicrohttpd daemon, whose threads serve the connections that are added to it.
struct MicrohttpdDaemon: ~Copyable {
    // Invariant: valid until deinit, which stops the daemon.
    private let daemon: OpaquePointer
    private let core: Unmanaged<ServerCore>

    /// TLS versions and ciphers: GnuTLS's defaults without the two versions that RFC 8996 forbids.
    private static let priorities = "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1"

    /// In PEM; the daemon needs one to start, and each connection gets that of ``TLSCertificate``.
    struct Certificate {
        let certificate: [UInt8]
        let key: [UInt8]
    }

    /// Starts the threads.
    ///
    /// The messages that libmicrohttpd logs meanwhile become the reason of an error.
    init(_ core: ServerCore) throws(HTTPServerError) {
        // Retained here and released once: when the daemon has stopped, or below. All callbacks happen in between.
        let held = Unmanaged.passRetained(core)
        guard let started = Self.start(core, context: held.toOpaque(), core.certificate?.first) else {
            held.release()
            let reason = core.startLog.withLock { $0 ?? [] }.joined(separator: "; ")
            guard let tls = core.configuration.tls else { throw .cannotStart(reason: reason) }
            throw .unusableCertificate(certificate: tls.certificate, key: tls.key, reason: reason)
        }
        core.startLog.withLock { $0 = nil }
        daemon = started
        self.core = held
    }

    /// Waits for the threads to end and closes every connection; none may be suspended.
    ///
    /// Afterwards only tasks that outlive their connection use the core.
    deinit {
        MHD_stop_daemon(daemon)
        core.release()
    }

    /// Passes ownership of a socket to the daemon; `false` if the daemon has closed it at once.
    func add(_ socket: Int32, _ address: borrowing sockaddr_storage, length: socklen_t) -> Bool {
        var address = copy address
        return withUnsafeBytes(of: &address) {
            MHD_add_connection(daemon, socket, $0.assumingMemoryBound(to: sockaddr.self).baseAddress!, length)
        } == .YES
    }

    private static func start(
        _ core: ServerCore, context: UnsafeMutableRawPointer, _ certificate: Certificate?
    ) -> OpaquePointer? {
        let configuration = core.configuration
        var settings = CMicrohttpdSettings()
        settings.threads = UInt32(configuration.threadCount)
        // Never reached, however connections are distributed over the threads: `ConnectionTable` has the exact limit.
        settings.connectionLimit = UInt32((configuration.maxConnections + 1) * configuration.threadCount)
        settings.idleSeconds = UInt32(configuration.idleTimeout.components.seconds)
        // For the headers, libmicrohttpd's entry for each of them (about 60 bytes) and the headers of the response.
        // libmicrohttpd zeroes half of it with the first request, so every open connection uses it.
        settings.connectionMemory = configuration.maxHeaderBytes + max(configuration.maxHeaderBytes / 2, 2048)
        var callbacks = MicrohttpdCallbacks.all(context: context)
        guard let certificate else { return CMicrohttpd_start(&settings, &callbacks) }
        return (certificate.certificate + [0]).withUnsafeBufferPointer { pem in
            (certificate.key + [0]).withUnsafeBufferPointer { key in
                priorities.withCString { priorities in
                    settings.certificate = UnsafeRawPointer(pem.baseAddress!).assumingMemoryBound(to: CChar.self)
                    settings.key = UnsafeRawPointer(key.baseAddress!).assumingMemoryBound(to: CChar.self)
                    settings.priorities = priorities
                    return CMicrohttpd_start(&settings, &callbacks)
                }
            }
        }
    }
}

/// The callbacks from libmicrohttpd.
///
/// The `socket_context` of a connection is its `Connection`, retained when the connection starts and released when its
/// socket closes. A connection that is not in the table has none and is refused.
enum MicrohttpdCallbacks {
    static func all(context: UnsafeMutableRawPointer) -> CMicrohttpdCallbacks {
        CMicrohttpdCallbacks(
            context: context,
            answer: { _, handle, target, method, version, bytes, count, _ in
                guard let handle, let count, let connection = MicrohttpdCallbacks.connection(handle) else { return .NO }
                guard connection.incoming.hasBegun else {
                    return connection.begin(handle, method: method, target: target, version: version)
                }
                guard count.pointee > 0 else { return connection.finishRequest(handle) }
                let (result, isTaken) = connection.append(
                    UnsafeRawBufferPointer(start: bytes, count: count.pointee), of: handle)
                // What is left comes again when the connection is resumed.
                if isTaken { count.pointee = 0 }
                return result
            },
            completed: { _, handle, _, _ in
                handle.flatMap(MicrohttpdCallbacks.connection)?.requestEnded()
            },
            connection: { context, handle, slot, code in
                guard let context, let handle, let slot else { return }
                switch code {
                case .CONNECTION_NOTIFY_STARTED:
                    let core = Unmanaged<ServerCore>.fromOpaque(context).takeUnretainedValue()
                    let connection = core.table[CMicrohttpd_socket(handle)]
                    slot.pointee = connection.map { Unmanaged.passRetained($0).toOpaque() }
                    connection?.start(handle)
                default:
                    guard let held = slot.pointee else { return }
                    slot.pointee = nil
                    Unmanaged<Connection>.fromOpaque(held).takeRetainedValue().socketCloses()
                }
            },
            requestLine: { _, target, handle in
                handle.flatMap(MicrohttpdCallbacks.connection)?.requestLineArrived(
                    length: target.map { strlen($0) } ?? 0)
                return nil
            },
            unescape: { _, _, text in
                // Not unescaped here: paths are split before they are decoded.
                text.map { strlen($0) } ?? 0
            },
            log: { context, format, arguments in
                guard let context, let format, let arguments else { return }
                let core = Unmanaged<ServerCore>.fromOpaque(context).takeUnretainedValue()
                core.log(MicrohttpdCallbacks.line(format, arguments))
            })
    }

    private static func connection(_ handle: OpaquePointer) -> Connection? {
        CMicrohttpd_socket_context(handle).map { Unmanaged<Connection>.fromOpaque($0).takeUnretainedValue() }
    }

    private static func line(_ format: UnsafePointer<CChar>, _ arguments: CVaListPointer) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 1024) { text in
            guard vsnprintf(text.baseAddress, text.count, format, arguments) >= 0 else {
                return String(cString: format)
            }
            return String(String(cString: text.baseAddress!).split(separator: "\n").joined(separator: " "))
        }
    }
}
/// libmicrohttpd's handle of a connection.
struct MicrohttpdConnection: @unchecked Sendable {
    // Unchecked: used by the connection's thread inside callbacks, or by any thread to resume the connection while it
    // is suspended. libmicrohttpd frees a connection only while it is not suspended, and each suspension is resumed
    // once, under the lock of the object that recorded it; therefore the pointer is valid at every use.
    let pointer: OpaquePointer
}

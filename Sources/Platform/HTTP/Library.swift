import CMicrohttpd
import Glibc
import Synchronization

/// The running library: its threads serve the connections handed to it.
struct Library: ~Copyable {
    // Invariant: valid until deinit, which stops the library and is the last to use it.
    private let daemon: OpaquePointer
    private let core: Unmanaged<ServerCore>

    /// The TLS versions and ciphers: GnuTLS's own choice without the two versions that RFC 8996 forbids.
    private static let priorities = "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1"

    /// The texts of a certificate and its key.
    struct Certificate {
        let certificate: [UInt8]
        let key: [UInt8]
    }

    /// Starts the threads.
    ///
    /// What the library complains about meanwhile becomes the reason of the error.
    init(_ core: ServerCore, certificate: Certificate?) throws(HTTPServerError) {
        // Retained once here, released once: when the library has stopped, or below. No callback comes outside of that.
        let held = Unmanaged.passRetained(core)
        guard let started = Self.start(core, context: held.toOpaque(), certificate) else {
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
    /// The core must not take part in anything any more but tasks that outlive their connection.
    deinit {
        MHD_stop_daemon(daemon)
        core.release()
    }

    /// Hands over a socket, which the library closes from now on; `false` when it has done so already.
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
        // The table counts exactly; this is never reached, however unevenly connections fall to the threads.
        settings.connectionLimit = UInt32((configuration.maxConnections + 1) * configuration.threadCount)
        settings.idleSeconds = UInt32(configuration.idleTimeout.components.seconds)
        // Room for the headers, for what the library notes about each of them (some 60 bytes), and for those of the
        // answer. The library zeroes half of it with the first request, so every waiting connection pays for it.
        settings.connectionMemory = configuration.maxHeaderBytes + max(configuration.maxHeaderBytes / 2, 1536)
        var callbacks = LibraryCallbacks.all(context: context)
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

/// The entrances from the library.
///
/// A connection's `socket_context` is its `Connection`: retained when the library tells of the connection, released when
/// it tells that the socket closes, and both exactly once. A connection unknown to the table has none and is refused.
enum LibraryCallbacks {
    static func all(context: UnsafeMutableRawPointer) -> CMicrohttpdCallbacks {
        CMicrohttpdCallbacks(
            context: context,
            answer: { _, handle, target, method, version, bytes, count, _ in
                guard let handle, let count, let connection = LibraryCallbacks.connection(handle) else { return .NO }
                guard connection.reception.hasBegun else {
                    return connection.begin(handle, method: method, target: target, version: version)
                }
                guard count.pointee > 0 else { return connection.conclude(handle) }
                defer { count.pointee = 0 }
                return connection.take(UnsafeRawBufferPointer(start: bytes, count: count.pointee))
            },
            completed: { _, handle, _, _ in
                handle.flatMap(LibraryCallbacks.connection)?.requestEnded()
            },
            connection: { context, handle, slot, code in
                guard let context, let handle, let slot else { return }
                switch code {
                case .CONNECTION_NOTIFY_STARTED:
                    let core = Unmanaged<ServerCore>.fromOpaque(context).takeUnretainedValue()
                    let connection = core.table[CMicrohttpd_socket(handle)]
                    slot.pointee = connection.map { Unmanaged.passRetained($0).toOpaque() }
                default:
                    guard let held = slot.pointee else { return }
                    slot.pointee = nil
                    Unmanaged<Connection>.fromOpaque(held).takeRetainedValue().socketCloses()
                }
            },
            requestLine: { _, target, handle in
                handle.flatMap(LibraryCallbacks.connection)?.requestLineArrived(length: target.map { strlen($0) } ?? 0)
                return nil
            },
            unescape: { _, _, text in
                // Left as it is: paths are split before they are decoded.
                text.map { strlen($0) } ?? 0
            },
            log: { context, format, arguments in
                guard let context, let format, let arguments else { return }
                let core = Unmanaged<ServerCore>.fromOpaque(context).takeUnretainedValue()
                core.log(LibraryCallbacks.line(format, arguments))
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

import Glibc

/// Why a server does not start.
package enum HTTPServerError: Error, Sendable, CustomStringConvertible {
    /// A setting is out of its range.
    case invalidConfiguration(key: String, reason: String)
    /// The host cannot be resolved, or is not an address of this machine.
    case unknownHost(host: String, reason: String)
    case addressInUse(host: String, port: UInt16)
    /// This user may not listen on the port (below 1024).
    case notPermitted(host: String, port: UInt16)
    case cannotListen(host: String, port: UInt16, code: Int32)
    case unreadableFile(path: String, code: Int32)
    case unusableCertificate(certificate: String, key: String, reason: String)
    /// Out of threads, descriptors or memory.
    case cannotStart(reason: String)
    /// `start()` was called a second time.
    case alreadyStarted

    package var description: String {
        switch self {
        case .invalidConfiguration(let key, let reason):
            "\(key) \(reason)"
        case .unknownHost(let host, let reason):
            "cannot listen on '\(host)': \(reason); configure an address of this machine, or 0.0.0.0 or :: for all"
        case .addressInUse(let host, let port):
            "port \(port) of \(host) is used by another process; stop it or choose another port"
        case .notPermitted(let host, let port):
            "this user may not listen on port \(port) of \(host); choose one above 1023 or grant CAP_NET_BIND_SERVICE"
        case .cannotListen(let host, let port, let code):
            "cannot listen on port \(port) of \(host): \(Self.text(code))"
        case .unreadableFile(let path, let code):
            "cannot read \(path): \(Self.text(code)); check the path and that this user may read it"
        case .unusableCertificate(let certificate, let key, let reason):
            """
            the certificate \(certificate) and the key \(key) cannot be used: \(reason); both must be PEM, and the key \
            must have no password and belong to the certificate
            """
        case .cannotStart(let reason):
            "the server cannot start: \(reason)"
        case .alreadyStarted:
            "the server was started before; create a new one"
        }
    }

    static func text(_ code: Int32) -> String {
        String(cString: strerror(code)) + " (errno \(code))"
    }
}

/// An event of a running server, for its log.
package enum HTTPServerEvent: Sendable {
    /// A line of libmicrohttpd's log: malformed requests, clients that disconnect, and its own errors.
    case library(String)
    /// A connection could not be accepted: out of descriptors or memory. The server tries again after 100 ms.
    case acceptFailed(code: Int32)
    /// The limit of open files is below what `maxConnections` needs; raise the hard limit (ulimit -Hn).
    case fewDescriptors(needed: Int, allowed: Int)
    /// The certificate's files have changed, and new connections get what they have now; with the time at which it expires, in RFC
    /// 3339.
    case certificateLoaded(path: String, expires: String)
    /// The certificate's files have changed and cannot be used: new connections get the previous certificate.
    case certificateUnusable(reason: String)
    /// A handler's response could not be sent; the client received 500.
    case invalidResponse(String)
}

import Glibc

/// Why a server does not start; each says what to do.
package enum HTTPServerError: Error, Sendable, CustomStringConvertible {
    /// A setting is out of its range.
    case invalidConfiguration(key: String, reason: String)
    /// The host to listen at is no address of this machine or cannot be found.
    case unknownHost(host: String, reason: String)
    /// Another process listens there.
    case addressInUse(host: String, port: UInt16)
    /// The system does not let this user listen there (ports below 1024).
    case notPermitted(host: String, port: UInt16)
    /// The system refused to open the socket for another reason.
    case cannotListen(host: String, port: UInt16, code: Int32)
    /// A file of the certificate cannot be read.
    case unreadableFile(path: String, code: Int32)
    /// The certificate or key is not what HTTPS needs.
    case unusableCertificate(certificate: String, key: String, reason: String)
    /// The library or the system has no more of what a server needs: threads, descriptors, memory.
    case cannotStart(reason: String)
    /// `start()` was called a second time.
    case alreadyStarted

    /// What is wrong and what to do about it.
    package var description: String {
        switch self {
        case .invalidConfiguration(let key, let reason):
            "\(key) \(reason)"
        case .unknownHost(let host, let reason):
            "cannot listen at '\(host)': \(reason); give an address of this machine, or 0.0.0.0 or :: for all"
        case .addressInUse(let host, let port):
            "port \(port) at \(host) is taken by another process; stop it or choose another port"
        case .notPermitted(let host, let port):
            "this user may not listen at port \(port) of \(host); choose one above 1023 or grant CAP_NET_BIND_SERVICE"
        case .cannotListen(let host, let port, let code):
            "cannot listen at port \(port) of \(host): \(Self.text(code))"
        case .unreadableFile(let path, let code):
            "cannot read \(path): \(Self.text(code)); check the path and that this user may read it"
        case .unusableCertificate(let certificate, let key, let reason):
            """
            the certificate \(certificate) and the key \(key) cannot be used: \(reason); both must be PEM, the key \
            without a password and made for this certificate
            """
        case .cannotStart(let reason):
            "the server cannot start: \(reason)"
        case .alreadyStarted:
            "the server was started before; make a new one"
        }
    }

    /// What the system calls an error.
    static func text(_ code: Int32) -> String {
        String(cString: strerror(code)) + " (errno \(code))"
    }
}

/// What an operator may want to know of a running server.
package enum HTTPServerEvent: Sendable {
    /// A line of libmicrohttpd's log: broken requests, clients that vanish, and its own troubles.
    case library(String)
    /// No new connection can be taken for want of descriptors or memory; tried again as soon as one ends, and after
    /// 100 ms.
    case acceptFailed(code: Int32)
    /// The system lets this process open fewer files than `maxConnections` needs; raise its hard limit (ulimit -Hn).
    case fewDescriptors(needed: Int, allowed: Int)
    /// A handler's response could not be sent, the client got 500.
    case invalidResponse(String)
}

import CEventFD
import CMicrohttpd
import Glibc

/// A listening socket.
struct Listener: ~Copyable {
    let descriptor: Descriptor
    /// The bound address; for port 0, with the port that the system chose.
    let address: HTTPPeer

    /// The backlog of connections to accept; capped by net.core.somaxconn, by default 4096.
    private static let backlog: Int32 = 4096

    /// Listens on the first address of the host that can be bound.
    init(host: String, port: UInt16) throws(HTTPServerError) {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
        var found: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, String(port), &hints, &found)
        defer { freeaddrinfo(found) }
        guard code == 0 else {
            throw .unknownHost(host: host, reason: String(cString: gai_strerror(code)))
        }
        var failure = EADDRNOTAVAIL
        var next = found
        while let candidate = next?.pointee {
            next = candidate.ai_next
            let socket = socket(
                candidate.ai_family, candidate.ai_socktype | Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
            guard socket >= 0 else {
                failure = errno
                continue
            }
            let descriptor = Descriptor(socket)
            var yes: Int32 = 1
            // Allows to bind the port of a server that stopped recently; if it fails, the bind below may report an
            // error.
            setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
            guard bind(socket, candidate.ai_addr, candidate.ai_addrlen) == 0, listen(socket, Self.backlog) == 0,
                let address = Self.boundAddress(socket)
            else {
                failure = errno
                continue
            }
            self.descriptor = descriptor
            self.address = address
            return
        }
        switch failure {
        case EADDRINUSE: throw .addressInUse(host: host, port: port)
        case EACCES, EPERM: throw .notPermitted(host: host, port: port)
        case EADDRNOTAVAIL: throw .unknownHost(host: host, reason: HTTPServerError.text(failure))
        default: throw .cannotListen(host: host, port: port, code: failure)
        }
    }

    private static func boundAddress(_ socket: Int32) -> HTTPPeer? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let code = withUnsafeMutableBytes(of: &storage) {
            getsockname(socket, $0.assumingMemoryBound(to: sockaddr.self).baseAddress!, &length)
        }
        return code == 0 ? HTTPPeer(storage) : nil
    }
}

import Foundation

/// A port of 127.0.0.1 that nobody listens on.
package enum FreePort {
    /// Where systems do not look for the ports of outgoing connections: a server that is started again finds its port, and
    /// whoever connects to it meanwhile does not meet itself there.
    private static let range = 15_000..<32_000

    /// A port at random; it is free until somebody else is given it.
    package static func find() throws -> Int {
        for _ in 0..<100 {
            let port = Int.random(in: range)
            if try isFree(port) { return port }
        }
        throw ServerFailure(reason: "no port of 127.0.0.1 is free between \(range)")
    }

    private static func isFree(_ port: Int) throws -> Bool {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard listener >= 0 else { throw ServerFailure(reason: String(cString: strerror(errno))) }
        defer { _ = close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = in_port_t(port).bigEndian
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, size) == 0 }
        }
    }
}

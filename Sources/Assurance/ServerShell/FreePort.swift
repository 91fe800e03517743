import Foundation
import Synchronization

/// A free port of 127.0.0.1.
package enum FreePort {
    /// Below the ports of outgoing connections: no connection takes the port of a server that restarts, and a client that
    /// connects meanwhile does not connect to itself.
    private static let range = 15_000..<32_000

    /// Those that were found already: a process that was given one may not listen yet.
    private static let found = Mutex<Set<Int>>([])

    /// A random free port, which is not reserved, and another one with each call of this process.
    package static func find() throws -> Int {
        for _ in 0..<100 {
            let port = Int.random(in: range)
            if try isFree(port), found.withLock({ $0.insert(port).inserted }) { return port }
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

import Foundation
import ServerShell

/// Blocking calls of Unix sockets.
enum UnixSocket {
    private static func make() -> Int32 {
        socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    }

    private static func withAddress<Result>(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result)
        -> Result
    {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { place in
            precondition(path.utf8.count < place.count, "the path of a socket is short")
            place.copyBytes(from: path.utf8)
        }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    static func listen(at path: String) throws -> Int32 {
        let socket = make()
        let isBound = withAddress(path) { bind(socket, $0, $1) == 0 }
        guard isBound, Foundation.listen(socket, 16) == 0 else {
            throw ServerFailure(reason: "\(path): \(String(cString: strerror(errno)))")
        }
        return socket
    }

    static func accept(_ listener: Int32) -> Int32? {
        let socket = Foundation.accept(listener, nil, nil)
        return socket < 0 ? nil : socket
    }

    static func connect(to path: String) -> Int32? {
        let socket = make()
        guard withAddress(path, { Foundation.connect(socket, $0, $1) == 0 }) else {
            close(socket)
            return nil
        }
        return socket
    }

    static func read(_ socket: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 65536)
        let count = recv(socket, &bytes, bytes.count, 0)
        return count > 0 ? Array(bytes[..<count]) : nil
    }

    static func write(_ bytes: ArraySlice<UInt8>, to socket: Int32) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let flags = Int32(MSG_NOSIGNAL)
            let count = rest.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, flags) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Shuts the connection down, which wakes its readers.
    static func end(_ socket: Int32) { _ = shutdown(socket, Int32(SHUT_RDWR)) }

    static func close(_ socket: Int32) { _ = Foundation.close(socket) }
}

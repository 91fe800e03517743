import Glibc
import LoadTools

/// Blocking calls of TCP sockets on 127.0.0.1.
enum Sockets {
    private static func call(
        _ function: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32, _ socket: Int32, _ port: UInt16
    ) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                function(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    private static func make() -> Int32 {
        socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    }

    static func listen(on port: UInt16) throws(LoadFailure) -> Int32 {
        let listener = make()
        set(listener, SOL_SOCKET, SO_REUSEADDR, Int32(1))
        guard call(bind, listener, port) == 0, Glibc.listen(listener, 128) == 0 else {
            throw .system("listening on port \(port)", errno)
        }
        return listener
    }

    static func connect(to port: UInt16) -> Int32? {
        let socket = make()
        guard call(Glibc.connect, socket, port) == 0 else {
            close(socket)
            return nil
        }
        return socket
    }

    static func sendAtOnce(_ socket: Int32) { set(socket, Int32(IPPROTO_TCP), TCP_NODELAY, Int32(1)) }

    /// Lets the last `close` reset the connection, and ends blocked calls.
    static func reset(_ sockets: Int32...) {
        for socket in sockets {
            set(socket, SOL_SOCKET, SO_LINGER, linger(l_onoff: 1, l_linger: 0))
            shutdown(socket, Int32(SHUT_RDWR))
        }
    }

    static func shutDown(_ sockets: Int32...) { for socket in sockets { shutdown(socket, Int32(SHUT_RDWR)) } }

    static func send(_ bytes: ArraySlice<UInt8>, to socket: Int32) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    private static func set<Value>(_ socket: Int32, _ level: Int32, _ option: Int32, _ value: Value) {
        withUnsafeBytes(of: value) { _ = setsockopt(socket, level, option, $0.baseAddress, socklen_t($0.count)) }
    }
}

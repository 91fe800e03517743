import Foundation
import Glibc

/// A server on loopback that answers each connection with scripted bytes, and hands over the requests that it received.
final class LocalServer: Sendable {
    /// What happens on a connection once its request has arrived.
    enum Step: Sendable {
        case write(String)
        /// Continues when the stream yields or ends.
        case wait(AsyncStream<Void>)
        /// Waits until the client has closed the connection.
        case awaitEnd
    }

    let port: UInt16
    private let socket: Int32
    private let requests = AsyncStream.makeStream(of: String.self)

    var url: URL { URL(string: "http://127.0.0.1:\(port)/")! }

    /// - Parameter scripts: of one connection each; a connection beyond them is closed at once.
    init(_ scripts: [[Step]]) throws {
        let listener = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, length) == 0 && listen(listener, 16) == 0
                    && getsockname(listener, address, &length) == 0
            }
        }
        guard bound else { throw POSIXError(.EADDRNOTAVAIL) }
        socket = listener
        port = UInt16(bigEndian: address.sin_port)
        let requests = requests.continuation
        let server = Thread {
            for script in scripts {
                let connection = accept(listener, nil, nil)
                if connection < 0 { break }
                requests.yield(Self.request(on: connection))
                Self.play(script, on: connection)
                close(connection)
            }
            requests.finish()
        }
        server.start()
    }

    deinit {
        shutdown(socket, Int32(SHUT_RDWR))
        close(socket)
    }

    /// The next request; `nil` after the last one.
    func request() async -> String? { await requests.stream.first { _ in true } }

    private static func request(on connection: Int32) -> String {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let text = String(decoding: bytes, as: UTF8.self)
            if let head = text.range(of: "\r\n\r\n") {
                let length = text.lowercased().firstMatch(of: /content-length: (\d+)/).flatMap { Int($0.1) } ?? 0
                if text[head.upperBound...].utf8.count >= length { return text }
            }
            let count = read(connection, &buffer, buffer.count)
            if count <= 0 { return text }
            bytes += buffer[..<count]
        }
    }

    private static func play(_ script: [Step], on connection: Int32) {
        for step in script {
            switch step {
            case .write(let text):
                let bytes = Array(text.utf8)
                var sent = 0
                while sent < bytes.count {
                    let count = bytes[sent...].withUnsafeBytes {
                        send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                    }
                    if count <= 0 { return }
                    sent += count
                }
            case .wait(let gate):
                let opened = DispatchSemaphore(value: 0)
                Task {
                    for await _ in gate { break }
                    opened.signal()
                }
                opened.wait()
            case .awaitEnd:
                var byte: UInt8 = 0
                while read(connection, &byte, 1) > 0 {}
            }
        }
    }
}

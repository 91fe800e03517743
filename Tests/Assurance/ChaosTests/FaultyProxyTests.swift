import Foundation
import LoadTools
import ServerShell
import Testing

@testable import Chaos

/// A proxy in front of a server that echoes what it gets.
@Suite(.timeLimit(.minutes(2)))
struct FaultyProxyTests {
    /// Echoes the bytes of one connection after the other.
    private final class EchoServer: Sendable {
        let port: UInt16
        private let listener: Int32

        init() throws {
            port = UInt16(try FreePort.find())
            listener = try Sockets.listen(on: port)
            Thread.detachNewThread { [listener] in
                while true {
                    let socket = accept(listener, nil, nil)
                    guard socket >= 0 else { break }
                    Thread.detachNewThread {
                        var bytes = [UInt8](repeating: 0, count: 4096)
                        while true {
                            let count = recv(socket, &bytes, bytes.count, 0)
                            guard count > 0, Sockets.send(bytes[..<count], to: socket) else { break }
                        }
                        close(socket)
                    }
                }
                close(listener)
            }
        }

        deinit { Sockets.shutDown(listener) }
    }

    /// Sends a byte and receives one; `nil` when the connection has ended.
    private func exchange(_ socket: Int32, _ byte: UInt8) -> UInt8? {
        guard Sockets.send([byte], to: socket) else { return nil }
        return receive(socket)
    }

    private func receive(_ socket: Int32) -> UInt8? {
        var byte: UInt8 = 0
        return recv(socket, &byte, 1, 0) == 1 ? byte : nil
    }

    private func play(_ body: (FaultyProxy) throws -> Void) throws {
        let server = try EchoServer()
        let proxy = try FaultyProxy(on: UInt16(FreePort.find()), to: server.port)
        defer { proxy.end() }
        try withExtendedLifetime(server) { try body(proxy) }
    }

    @Test func bytesPassAtOnceOrDelayed() throws {
        try play { proxy in
            let socket = try #require(Sockets.connect(to: proxy.port))
            defer { close(socket) }
            #expect(exchange(socket, 7) == 7)
            proxy.set(.delay(milliseconds: 5))
            #expect(exchange(socket, 8) == 8)
        }
    }

    @Test func refusedConnectionsAreResetAndNewOnesToo() throws {
        try play { proxy in
            let socket = try #require(Sockets.connect(to: proxy.port))
            defer { close(socket) }
            #expect(exchange(socket, 7) == 7)
            proxy.set(.refuse)
            #expect(exchange(socket, 8) == nil)
            if let other = Sockets.connect(to: proxy.port) {
                #expect(exchange(other, 9) == nil)
                close(other)
            }
            proxy.set(.pass)
            let next = try #require(Sockets.connect(to: proxy.port))
            defer { close(next) }
            #expect(exchange(next, 10) == 10)
        }
    }

    @Test func aSilentConnectionContinuesWhereItWas() throws {
        try play { proxy in
            let socket = try #require(Sockets.connect(to: proxy.port))
            defer { close(socket) }
            #expect(exchange(socket, 7) == 7)
            proxy.set(.hang)
            #expect(Sockets.send([8], to: socket))
            let other = try #require(Sockets.connect(to: proxy.port))
            defer { close(other) }
            #expect(Sockets.send([9], to: other))
            var byte: UInt8 = 0
            #expect(recv(socket, &byte, 1, Int32(MSG_DONTWAIT)) == -1)
            proxy.set(.pass)
            #expect(receive(socket) == 8)
            #expect(receive(other) == 9)
        }
    }

    @Test func theEndOfAProxyEndsItsConnections() throws {
        let server = try EchoServer()
        let proxy = try FaultyProxy(on: UInt16(FreePort.find()), to: server.port)
        let socket = try #require(Sockets.connect(to: proxy.port))
        defer { close(socket) }
        #expect(exchange(socket, 7) == 7)
        proxy.set(.hang)
        #expect(Sockets.send([8], to: socket))
        proxy.end()
        #expect(receive(socket) == nil)
    }
}

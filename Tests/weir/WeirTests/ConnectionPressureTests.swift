import Foundation
import Fuzzing
import Testing

/// Clients that hold idle connections cost the documented memory, and do not affect others.
@Suite struct ConnectionPressureTests {
    private static let head = "POST /v1/sync HTTP/1.1\r\nHost: localhost\r\nX-Sync-Id: abc\r\n"

    @Test func requestsThatTrickleAreCutAfterTheTimeout() async throws {
        let weir = try await TestServer.start(settings: ["gateway.request-timeout": "2s"])
        var bystander = HealthyDevice(weir)
        let port = weir.port
        try await bystander.watch {
            try await withThrowingTaskGroup { group in
                for beginning in [
                    "Content-Length: 1000000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nf4240\r\n", "X-Slow: ",
                ] {
                    group.addTask {
                        let answer = try await RawConnection.onThread {
                            let connection = try RawConnection(port: port)
                            connection.send((Self.head + beginning).utf8)
                            let count = connection.trickle(UInt8(ascii: "x"))
                            #expect(count < 1_000_000)
                            return try DeviceClient.parse(try connection.rest())
                        }
                        BadRequestTests.check(answer, 408, "request_timeout", beginning)
                    }
                }
                try await group.waitForAll()
            }
        }
        try await bystander.check(weir)
        #expect(await weir.stop() == 0)
    }

    @Test func silentConnectionsAreClosedAfterTheTimeout() async throws {
        let weir = try await TestServer.start(
            settings: ["gateway.request-timeout": "2s", "gateway.max-connections": "40"])
        let port = weir.port
        // One thread each, so that all are open at a time: those beyond the limit are closed at once, the others in time.
        try await withThrowingTaskGroup { group in
            for number in 0..<60 {
                group.addTask {
                    let start = number % 2 == 0 ? "" : "POST /v1/sy"
                    let answer = try await RawConnection.exchange(Data(start.utf8), port: port, finishes: false)
                    #expect(answer.isEmpty)
                }
            }
            try await group.waitForAll()
        }
        var bystander = HealthyDevice(weir)
        try await bystander.sync()
        try await bystander.check(weir)
        #expect(await weir.stop() == 0)
    }

    @Test func oneAddressCannotUseUpAllConnections() async throws {
        let weir = try await TestServer.start(
            settings: ["gateway.max-connections-per-address": "20", "gateway.max-connections": "100"])
        var bystander = HealthyDevice(weir)
        let port = weir.port
        try await bystander.watch {
            try await RawConnection.onThread {
                let held = try (0..<200).map { _ in try RawConnection(port: port, from: 2) }
                // The server has closed those above the limit; otherwise they would reach the limit of all addresses.
                let answer = try withExtendedLifetime(held) { try DeviceClient.parse(try Self.get(port)) }
                #expect(answer.status == 200)
            }
        }
        try await bystander.check(weir)
        #expect(await weir.stop() == 0)
    }

    private static func get(_ port: UInt16) throws -> Data {
        let connection = try RawConnection(port: port)
        connection.send(
            "GET /v1/schema HTTP/1.1\r\nHost: localhost\r\nX-Sync-Id: abc\r\nConnection: close\r\n\r\n".utf8)
        return try connection.rest()
    }

    /// Bytes that a connection may cost: what `HTTPServerConfiguration` states for 4 KiB of headers, and a quarter.
    private static let bytesPerConnection = (5 + 3) * 1024 * 5 / 4

    @Test func tenThousandSilentConnectionsCostTheDocumentedMemory() async throws {
        let count = min(10_000, try Self.raisedDescriptorLimit() - 1000)
        let weir = try await TestServer.start(
            settings: [
                "gateway.request-timeout": "1h", "gateway.max-connections": "\(count + 1000)",
                "gateway.max-connections-per-address": "0",
            ])
        var bystander = HealthyDevice(weir)
        for _ in 0..<20 { try await bystander.sync() }
        let before = try weir.residentBytes()
        let port = weir.port
        let growth = try await bystander.watch {
            try await RawConnection.onThread {
                let held = try (0..<count).map { number in
                    let connection = try RawConnection(port: port)
                    connection.resetAtEnd()
                    if number % 2 == 0 { connection.send(Self.head.utf8) }
                    return connection
                }
                return try withExtendedLifetime(held) {
                    // Connections are accepted in their order: when this one is answered, the others have been.
                    let answer = try DeviceClient.parse(try Self.get(port))
                    #expect(answer.status == 200)
                    return try weir.residentBytes() - before
                }
            }
        }
        #expect(growth < count * Self.bytesPerConnection + 32 << 20, "\(growth / count) bytes a connection")
        if TestLength.current == .long { print("\(count) silent connections: \(growth / count) bytes each") }
        try await bystander.check(weir)
        #expect(await weir.stop() == 0)
    }

    /// Raises the limit of open files as far as allowed, and returns it.
    private static func raisedDescriptorLimit() throws -> Int {
        var limit = rlimit()
        try #require(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
        limit.rlim_cur = limit.rlim_max
        try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
        return Int(clamping: limit.rlim_cur)
    }
}

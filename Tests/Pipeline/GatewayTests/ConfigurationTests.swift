import Configuration
import Gateway
import HTTP
import Testing

@Suite struct ConfigurationTests {
    private func load(_ environment: [String: String]) throws -> GatewayConfiguration {
        var schema = ConfigurationSchema(program: "weir")
        schema.add(GatewayConfiguration.self, as: "gateway", "Gateway")
        return try schema.load(from: ConfigurationSources(environment: environment)) { $0.read() }.settings
    }

    @Test func hasDefaultsForEverything() throws {
        let read = try load([:])
        let defaults = GatewayConfiguration()
        #expect(read.address.description == "127.0.0.1:7777")
        #expect(read.outcomeWait == .seconds(10))
        #expect(read.keepAlive == .seconds(15))
        #expect(read.pageBytes == 4 << 20)
        #expect(read.server.threads == defaults.server.threads)
        #expect(read.server.maxConnectionsPerClient == defaults.server.maxConnectionsPerClient)
        #expect(read.server.tls == nil)
        #expect(read.demo == nil)
    }

    @Test func readsEveryKey() throws {
        let read = try load([
            "WEIR_GATEWAY_ADDRESS": "[::1]:9", "WEIR_GATEWAY_TLS_CERTIFICATE": "c.pem", "WEIR_GATEWAY_TLS_KEY": "k.pem",
            "WEIR_GATEWAY_THREADS": "3", "WEIR_GATEWAY_MAX_CONNECTIONS": "4",
            "WEIR_GATEWAY_MAX_CONNECTIONS_PER_ADDRESS": "0",
            "WEIR_GATEWAY_MAX_HEADER_BYTES": "600", "WEIR_GATEWAY_MAX_BYTES_IN_FLIGHT": "2MiB",
            "WEIR_GATEWAY_REQUEST_TIMEOUT": "7s", "WEIR_GATEWAY_IDLE_TIMEOUT": "8s", "WEIR_GATEWAY_OUTCOME_WAIT": "9ms",
            "WEIR_GATEWAY_KEEP_ALIVE": "10s", "WEIR_GATEWAY_PAGE_BYTES": "11KiB", "WEIR_GATEWAY_MAX_WAITING": "12",
            "WEIR_GATEWAY_UPLOAD_BYTES_IN_FLIGHT": "13MiB", "WEIR_GATEWAY_CALLER_BYTES_IN_FLIGHT": "14KiB",
            "WEIR_GATEWAY_CALLER_REQUESTS_PER_SECOND": "20", "WEIR_GATEWAY_CALLER_CHANGES_PER_SECOND": "15",
            "WEIR_GATEWAY_CALLER_BYTES_PER_SECOND": "21KiB", "WEIR_GATEWAY_CALLER_BYTES_PER_DAY": "22GiB",
            "WEIR_GATEWAY_CALLER_PULLED_BYTES_PER_SECOND": "23MiB",
            "WEIR_GATEWAY_DEVICE_PULLED_BYTES_PER_SECOND": "24MiB",
            "WEIR_GATEWAY_DEVICE_REQUESTS_PER_SECOND": "0",
            "WEIR_GATEWAY_DEVICE_CHANGES_PER_SECOND": "23", "WEIR_GATEWAY_DEVICE_BYTES_PER_SECOND": "0",
            "WEIR_GATEWAY_MAX_LAG": "16ms", "WEIR_GATEWAY_ANSWER_BYTES_IN_FLIGHT": "17MiB",
            "WEIR_GATEWAY_LEAST_READ_RATE": "18KiB",
            "WEIR_GATEWAY_CALLER_LAG": "19ms", "WEIR_GATEWAY_REFUSAL_DELAY": "25ms",
            "WEIR_GATEWAY_DEVICE_INTERVAL": "20s",
            "WEIR_GATEWAY_MAX_DEVICES": "21",
            "WEIR_GATEWAY_CORS_ORIGINS": "https://app.example,http://localhost:5173", "WEIR_GATEWAY_DEMO": "false",
        ])
        #expect(read.demo == false)
        #expect(read.address.description == "[::1]:9")
        #expect(read.server.tls?.certificate == "c.pem")
        #expect(read.server.tls?.key == "k.pem")
        #expect(read.server.threads == 3)
        #expect(read.server.maxConnections == 4)
        #expect(read.server.maxConnectionsPerClient == nil)
        #expect(read.server.maxHeaderBytes == 600)
        #expect(read.server.maxBytesInFlight == 2 << 20)
        #expect(read.server.requestTimeout == .seconds(7))
        #expect(read.server.idleTimeout == .seconds(8))
        #expect(read.outcomeWait == .milliseconds(9))
        #expect(read.keepAlive == .seconds(10))
        #expect(read.pageBytes == 11 << 10)
        #expect(read.maxWaiting == 12)
        #expect(read.uploadBytesInFlight == 13 << 20)
        #expect(read.callerBytesInFlight == 14 << 10)
        #expect(
            read.callerRates
                == Rates(requests: 20, changes: 15, bytes: 21 << 10, dailyBytes: 22 << 30, pulledBytes: 23 << 20))
        #expect(read.deviceRates == Rates(requests: 0, changes: 23, bytes: 0, pulledBytes: 24 << 20))
        #expect(read.maxLag == .milliseconds(16))
        #expect(read.server.maxAnswerBytesInFlight == 17 << 20)
        #expect(read.server.leastReadRate == 18 << 10)
        #expect(read.callerLag == .milliseconds(19))
        #expect(read.refusalDelay == .milliseconds(25))
        #expect(read.deviceInterval == .seconds(20))
        #expect(read.maxDevices == 21)
        #expect(read.corsOrigins == ["https://app.example", "http://localhost:5173"])
        #expect(GatewayConfiguration.settings.count == 34)
    }

    @Test(arguments: [
        (["WEIR_GATEWAY_TLS_KEY": "k"], "gateway.tls.key: needs tls.certificate"),
        (["WEIR_GATEWAY_TLS_CERTIFICATE": "c"], "gateway.tls.certificate: needs tls.key"),
        (["WEIR_GATEWAY_KEEP_ALIVE": "1500ms"], "gateway.keep-alive: must be whole seconds"),
        (["WEIR_GATEWAY_IDLE_TIMEOUT": "1500ms"], "gateway.idle-timeout: must be whole seconds"),
        (["WEIR_GATEWAY_CORS_ORIGINS": "https://a.example/"], "without a path"),
        (["WEIR_GATEWAY_CORS_ORIGINS": "a.example"], "gateway.cors-origins: \"a.example\" is no origin"),
        (["WEIR_GATEWAY_CORS_ORIGINS": "https://A.example"], "must be in lower case"),
        (["WEIR_GATEWAY_CORS_ORIGINS": "https://a.example:443"], "must not have the default port 443"),
        (["WEIR_GATEWAY_CORS_ORIGINS": "null"], "\"null\" is no origin"),
        (["WEIR_GATEWAY_CORS_ORIGINS": "https://a.example,*"], "\"*\" is no origin"),
    ])
    func refusesWhatDoesNotGoTogether(environment: [String: String], problem: String) {
        #expect(performing: { _ = try load(environment) }, throws: { "\($0)".contains(problem) })
    }
}

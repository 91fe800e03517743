import Commands
import Configuration
import NetworkLink
import Testing

/// Settings of the link.
@Suite(.timeLimit(.minutes(5))) struct ConfigurationTests {
    private func load(
        _ environment: [String: String], files: [String: String] = [:]
    ) throws -> (LinkConfiguration, FanOutServerConfiguration, RemoteFanOutConfiguration) {
        var schema = ConfigurationSchema(program: "weir")
        schema.add(LinkConfiguration.self, as: "link", "Link")
        schema.add(FanOutServerConfiguration.self, as: "link", "Link")
        schema.add(RemoteFanOutConfiguration.self, as: "link", "Link")
        let sources = ConfigurationSources(
            environment: environment,
            readFile: { (path, _) throws(FileFault) in
                guard let text = files[path] else { throw FileFault(code: 2, message: "no such file") }
                return Array(text.utf8)
            })
        return try schema.load(from: sources) { ($0.read(), $0.read(), $0.read()) }.settings
    }

    @Test func readsEveryKey() throws {
        let (link, server, client) = try load(
            [
                "WEIR_LINK_KEY_FILE": "key", "WEIR_LINK_HEARTBEAT": "2s", "WEIR_LINK_MAX_MESSAGE_BYTES": "8MiB",
                "WEIR_LINK_ADDRESS": "0.0.0.0:7791", "WEIR_LINK_MAX_REQUESTS": "10",
                "WEIR_LINK_MAX_REQUESTS_OF_GATEWAY": "5", "WEIR_LINK_MAX_UNREAD_BYTES": "1MiB",
                "WEIR_LINK_FAN_OUTS": "a:7790,[::1]:7790", "WEIR_LINK_MAX_REQUESTS_TO_FAN_OUT": "7",
                "WEIR_LINK_ANSWER_TIMEOUT": "9s",
            ], files: ["key": String(repeating: "0f", count: 32) + "\n"])
        #expect(link.key != nil && link.heartbeat == .seconds(2) && link.maximumMessageBytes == 8 << 20)
        #expect(!String(reflecting: link).contains("0f0f"))
        #expect(server.address == NetworkAddress("0.0.0.0:7791"))
        #expect(server.maximumRequests == 10 && server.maximumRequestsOfGateway == 5)
        #expect(server.maximumUnreadBytes == 1 << 20)
        #expect(client.fanOuts == [NetworkAddress("a:7790"), NetworkAddress("[::1]:7790")])
        #expect(client.maximumRequests == 7 && client.answerTimeout == .seconds(9))
    }

    @Test func defaultsConnectOnLoopbackWithoutKey() throws {
        let (link, server, client) = try load([:])
        #expect(link.key == nil)
        #expect(server.address == NetworkAddress("127.0.0.1:7790"))
        #expect(client.fanOuts == [server.address])
    }

    @Test func rejectsInvalidKeysAndAddressesWithAdvice() throws {
        let cases: [([String: String], String)] = [
            (["WEIR_LINK_FAN_OUTS": "a"], "no address; expected host:port"),
            (["WEIR_LINK_FAN_OUTS": "a:0"], "no address; expected host:port"),
            (["WEIR_LINK_FAN_OUTS": "a:1,a:1"], "is named twice"),
            (["WEIR_LINK_FAN_OUTS": "a:1", "WEIR_LINK_KEY_FILE": "key"], "openssl rand -hex 32"),
        ]
        for (environment, words) in cases {
            let problems = try #require(throws: ConfigurationProblems.self) {
                _ = try load(environment, files: ["key": String(repeating: "zz", count: 32)])
            }
            #expect(problems.description.contains(words), "\(problems)")
            #expect(!problems.description.contains("zz"))
        }
    }
}

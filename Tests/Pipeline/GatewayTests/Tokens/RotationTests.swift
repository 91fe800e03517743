import AsyncPrimitives
import Synchronization
import TestAuthority
import TestClocks
import TestSignals
import Testing
import TokenKeys
import WebTokens

/// Keys that an authority rotates, withdraws and fails to publish, over HTTP.
@Suite(.timeLimit(.minutes(5))) struct RotationTests {
    private static func key(_ name: String) -> SigningKey { SigningKey(generating: .es256, id: name)! }

    @Test func anUploadWithANewKeyWaitsForItAndIsAccepted() async throws {
        try await withTokens { test in
            let next = Self.key("two")
            test.authority.publish(TokenGateway.key, next)
            test.clock.advance(by: .seconds(30))
            test.authority.hold()
            let client = try HTTPClient(port: test.gateway.port)
            let changes = String(repeating: " ", count: 100_000)
            try await client.send(
                "POST", "/v1/upload", headers: ["Authorization: Bearer \(TokenGateway.token(key: next))"],
                body: Array(#"{"knowledgeId":"k1","batch":1,"changes":[\#(changes)]}"#.utf8))
            // The second request of the authority: its keys are being read for this upload.
            await test.authority.requests.next()
            await test.authority.requests.next()
            #expect(try test.gateway.batches.isEmpty)
            test.authority.release()
            #expect(try await client.answer().status == 202)
            #expect(try test.gateway.batches.count == 1)
        }
    }

    @Test func aFloodOfUnknownKeysCausesOneReadingInThirtySeconds() async throws {
        try await withTokens { test in
            let foreign = Self.key("foreign")
            var clients: [HTTPClient] = []
            for number in 0..<40 {
                let client = try HTTPClient(port: test.gateway.port)
                let token = TokenGateway.token(key: foreign, header: ["kid": "\"foreign \(number)\""])
                try await client.send(
                    "POST", "/v1/upload", headers: ["Authorization: Bearer \(token)"],
                    body: Array(#"{"knowledgeId":"k1","changes":[]}"#.utf8))
                clients.append(client)
            }
            while test.keys.waitingCount < 40 { await Task.yield() }
            await test.clock.sleeper(until: .seconds(30))
            // Others are served meanwhile.
            #expect(try await test.exchange(TokenGateway.token()).status == 200)
            #expect(test.authority.requestCount == 1)
            test.clock.advance(by: .seconds(30))
            for client in clients {
                let answer = try await client.answer()
                #expect(answer.status == 401)
                #expect(answer.text.contains("token_key"))
            }
            #expect(test.authority.requestCount == 2)
            // Sent again, they are refused at once.
            for number in 0..<40 {
                let token = TokenGateway.token(key: foreign, header: ["kid": "\"foreign \(number)\""])
                #expect(try await test.exchange(token).status == 401)
            }
            #expect(test.authority.requestCount == 2)
            #expect(test.gateway.log.records.isEmpty)
        }
    }

    @Test func moreUnknownKeysThanMayWaitAreAnsweredWith503() async throws {
        try await withTokens {
            $0.keys.maximumWaiting = 1
        } test: { test in
            let client = try HTTPClient(port: test.gateway.port)
            let token = TokenGateway.token(key: Self.key("foreign"))
            try await client.send("GET", "/v1/schema", headers: ["Authorization: Bearer \(token)"])
            while test.keys.waitingCount < 1 { await Task.yield() }
            let other = try await test.exchange(TokenGateway.token(key: Self.key("other")))
            #expect(other.status == 503)
            #expect(other["retry-after"] == "31")
            #expect(try await test.exchange(TokenGateway.token()).status == 200)
            client.leave()
        }
    }

    @Test func aWithdrawnKeyIsRefusedAfterTheGreatestAgeAlsoForCheckedTokens() async throws {
        try await withTokens {
            $0.keys.maximumAge = .seconds(600)
        } test: { test in
            let (token, next) = (TokenGateway.token(), Self.key("two"))
            #expect(try await test.exchange(token).status == 200)
            test.authority.publish(next)
            await test.clock.sleeper(until: .seconds(600))
            test.clock.advance(by: .seconds(599))
            #expect(try await test.exchange(token).status == 200)
            test.clock.advance(by: .seconds(1))
            #expect(await test.readings.next())
            for _ in 1...2 {
                let refused = try await test.exchange(token)
                #expect(refused.status == 401)
                #expect(refused.text.contains("token_key"))
            }
            #expect(try await test.exchange(TokenGateway.token(key: next)).status == 200)
        }
    }

    @Test(arguments: [
        TestAuthority.Answer(status: 500), .init(body: Array("<html>".utf8)), .init(body: Array(#"{"keys":0}"#.utf8)),
        .init(body: Array(repeating: 0x20, count: 2 << 20)),
    ])
    func theLastKeysServeWhileTheAuthorityFails(answer: TestAuthority.Answer) async throws {
        try await withTokens {
            $0.keys.maximumAge = .seconds(600)
        } test: { test in
            test.authority.respond(answer)
            await test.clock.sleeper(until: .seconds(600))
            test.clock.advance(by: .seconds(600))
            #expect(await !test.readings.next())
            #expect(try await test.exchange(TokenGateway.token()).status == 200)
            let unknown = try await test.exchange(TokenGateway.token(key: Self.key("two")))
            #expect(unknown.status == 503)
            #expect(unknown.text.contains(#""code":"not_ready""#))
        }
    }

    @Test func theLastKeysServeWhileTheAuthorityIsDown() async throws {
        try await withTokens {
            $0.keys.maximumAge = .seconds(600)
        } test: { test in
            await test.authority.stop()
            await test.clock.sleeper(until: .seconds(600))
            test.clock.advance(by: .seconds(600))
            #expect(await !test.readings.next())
            let answer = try await test.exchange(TokenGateway.token())
            #expect(answer.status == 200)
        }
    }

    /// Clients send requests all the time with a token of the newest key, which is published in the same moment.
    @Test func rotationsUnderLoadRefuseNoValidRequestAndAcceptNoWithdrawnKey() async throws {
        try await withTokens {
            $0.keys.maximumAge = .seconds(600)
        } test: { test in
            let load = Load(port: test.gateway.port, token: TokenGateway.token())
            var clients: [Task<Void, any Error>] = []
            for _ in 0..<4 { clients.append(Task { try await load.run() }) }
            var current = TokenGateway.key
            var withdrawn: [SigningKey] = []
            for round in 1...12 {
                let next = Self.key("round \(round)")
                test.authority.publish(next, current)
                load.use(TokenGateway.token(["exp": "1800000000"], key: next))
                // All clients come to wait for the new key, until a reading is due.
                while test.keys.waitingCount < 4 { await Task.yield() }
                test.clock.advance(by: .seconds(30))
                #expect(await test.readings.next())
                try await load.afterTwoMoreRequestsOfEach()
                // The old key is withdrawn; after the greatest age nothing of it is accepted.
                test.authority.publish(next)
                withdrawn.append(current)
                test.clock.advance(by: .seconds(600))
                #expect(await test.readings.next())
                for key in withdrawn {
                    let token = TokenGateway.token(["exp": "1800000000"], key: key)
                    let answer = try await test.exchange(token, "GET", "/v1/schema")
                    #expect(answer.status == 401, "round \(round)")
                }
                current = next
            }
            load.stop()
            for client in clients { try await client.value }
            #expect(load.refused == [:])
            #expect(load.count > 96)
        }
    }

    /// Clients that send requests one after the other.
    private final class Load: Sendable {
        private struct State {
            var token: String
            var isStopped = false
            var counts: [Int: Int] = [:]
            var refused: [Int: Int] = [:]
        }

        private let port: UInt16
        private let state: AwaitableState<State>

        init(port: UInt16, token: String) {
            self.port = port
            state = AwaitableState(State(token: token))
        }

        var refused: [Int: Int] { state.value.refused }
        var count: Int { state.value.counts.values.reduce(0, +) }

        func use(_ token: String) { state.update { $0.token = token } }

        func stop() { state.update { $0.isStopped = true } }

        func run() async throws {
            let number = state.update { state in
                state.counts[state.counts.count] = 0
                return state.counts.count - 1
            }
            let client = try HTTPClient(port: port)
            while case (let token, let isStopped) = state.read({ ($0.token, $0.isStopped) }), !isStopped {
                try await client.send(
                    "POST", "/v1/pull", headers: ["Authorization: Bearer \(token)"],
                    body: Array(#"{"knowledgeId":"k1"}"#.utf8))
                let status = try await client.answer().status
                state.update { state in
                    state.counts[number, default: 0] += 1
                    if status != 200 { state.refused[status, default: 0] += 1 }
                }
            }
        }

        /// So that none still sends a token from before.
        func afterTwoMoreRequestsOfEach() async throws {
            let before = state.value.counts
            try await state.wait { state in before.allSatisfy { state.counts[$0.key, default: 0] >= $0.value + 2 } }
        }
    }
}

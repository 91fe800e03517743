import Gateway
import HTTP
import TestClocks
import TestSignals
import Testing
import WebTokens

/// How long a token that was checked counts, and how many are remembered.
@Suite(.timeLimit(.minutes(5))) struct CheckedTokenTests {
    private typealias Setup = TokenGateway

    @Test func aTokenThatWasCheckedIsNotCheckedAgain() async throws {
        try await withTokens { test in
            let token = Setup.token()
            for _ in 1...5 {
                let answer = try await test.exchange(token)
                #expect(answer.status == 200)
            }
            #expect(test.checks == 1)
            // A changed one is another.
            let changed = try await test.exchange(token.replacing("eyJ", with: "eyI", maxReplacements: 1))
            #expect(changed.status == 401)
            let again = try await test.exchange(token)
            #expect(again.status == 200)
            #expect(test.checks == 1)
        }
    }

    @Test func aCheckedTokenExpires() async throws {
        try await withTokens { test in
            let token = Setup.token(["exp": "1700000100"])
            #expect(try await test.exchange(token).status == 200)
            test.clock.advance(by: .seconds(159))
            #expect(try await test.exchange(token).status == 200)
            test.clock.advance(by: .seconds(1))
            let expired = try await test.exchange(token)
            #expect(expired.text.contains("token_expired"))
            #expect(test.checks == 1)
        }
    }

    /// The token expires between the request's header and the end of its body.
    @Test(arguments: [(Duration.milliseconds(999), true), (.seconds(1), false)])
    func aTokenIsCheckedAgainWhereTheBodyComesLate(after: Duration, isBelieved: Bool) async throws {
        try await withTokens { gateway in
            let handler = gateway.gateway.handler
            var request = try #require(
                HTTPRequest(
                    direct: .post, "/v1/pull", headers: [("Authorization", "Bearer \(TokenGateway.token())")],
                    body: Array(#"{"knowledgeId":"k1"}"#.utf8)))
            guard case .acceptUpTo(_, caller: _, let context) = handler.bodyPolicy(for: request) else {
                Issue.record("the body is refused")
                return
            }
            request.context = context
            gateway.clock.advance(by: .seconds(2 * 3600))
            gateway.gateway.clock.advance(by: after)
            let status =
                switch handler.respond(to: request) {
                case .response(let response): response.status
                case .task(let work): await work().status
                }
            #expect((status != 401) == isBelieved)
            #expect(gateway.refusals(.expired) == (isBelieved ? 0 : 1))
        }
    }

    @Test func rememberedTokensHaveALimit() async throws {
        try await withTokens {
            $0.cachedTokens = (4, 1 << 20)
        } test: { test in
            let tokens = (0..<10).map { Setup.token(["sub": "\"s\($0)\""]) }
            for (token, checks) in zip(tokens + [tokens[9], tokens[0]], Array(1...10) + [10, 11]) {
                let answer = try await test.exchange(token, "GET", "/v1/schema")
                #expect(answer.status == 200)
                #expect(test.checks == checks)
            }
        }
        try await withTokens {
            $0.cachedTokens = (1000, 0)
        } test: { test in
            for checks in 1...2 {
                let answer = try await test.exchange(Setup.token(), "GET", "/v1/schema")
                #expect(answer.status == 200)
                #expect(test.checks == checks)
            }
        }
    }

    @Test func aLongPollEndsWithItsToken() async throws {
        try await withTokens { test in
            let client = try HTTPClient(port: test.gateway.port)
            // It holds for 10 s, leeway included.
            try await client.send(
                "POST", "/v1/pull", headers: ["Authorization: Bearer \(Setup.token(["exp": "1699999950"]))"],
                body: Array(#"{"knowledgeId":"k1","wait":30}"#.utf8))
            _ = await test.gateway.link.subscriptions.next()
            await test.gateway.clock.sleeper(until: .seconds(10))
            test.gateway.clock.advance(by: .seconds(10))
            let answer = try await client.answer()
            #expect(answer.status == 200)
            #expect(answer.text.contains(#""changes":[]"#))
        }
    }

    @Test func anEventStreamEndsWithItsToken() async throws {
        try await withTokens { test in
            let client = try HTTPClient(port: test.gateway.port)
            try await client.send(
                "GET", "/v1/watch", headers: ["Authorization: Bearer \(Setup.token(["exp": "1699999950"]))"])
            _ = try await client.head()
            await test.gateway.clock.sleeper(until: .seconds(15))
            test.gateway.clock.advance(by: .seconds(15))
            #expect(try await client.restOfChunks().isComplete)
        }
    }
}

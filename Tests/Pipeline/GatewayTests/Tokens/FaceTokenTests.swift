import FanOutLink
import Gateway
import SyncModel
import Testing

/// As which device a token lets somebody use a face, and for what.
@Suite(.timeLimit(.minutes(5))) struct FaceTokenTests {
    private func withFace(test: (TokenGateway) async throws -> Void) async throws {
        try await withTokens {
            $0.gateway = { $0.faces = GatewayFaces([EchoFace()]) }
        } test: { tokens in
            tokens.gateway.link.set(
                .results([(0, .applied(20), nil)], summary: BatchSummary(changeCount: 1)), ofPart: 0)
            try await test(tokens)
        }
    }

    private func header(_ device: String?) -> [String] { device.map { ["X-Device-Id: \($0)"] } ?? [] }

    private func token(_ device: String?) -> String {
        device.map { TokenGateway.token(["did": "\"\($0)\""]) } ?? TokenGateway.token()
    }

    @Test(arguments: [("k1", nil), ("k1", "k1"), (nil, "k1")] as [(String?, String?)])
    func theDeviceIsTheOneThatTheTokenOrElseTheHeaderNames(claim: String?, named: String?) async throws {
        try await withFace { test in
            let read = try await test.exchange(token(claim), "GET", "/echo/x", headers: header(named))
            #expect(read.status == 200 && read.text == #"{"device":"abc k1","parameters":"x"}"#)
            let write = try await test.exchange(
                token(claim), "POST", "/echo/x", headers: header(named), #"[{"id":"r0"}]"#)
            #expect(write.status == 200)
            #expect(try test.gateway.batches.map(\.device) == [Device(caller: .abc, knowledgeID: .k1)])
        }
    }

    @Test(
        arguments: [("k1", "k2", 403, "wrong_device"), (nil, nil, 422, "invalid_request")]
            as [(
                String?, String?, Int, String
            )])
    func anotherDeviceThanTheTokensOrNoneIsRefused(
        claim: String?, named: String?, status: Int, code: String
    ) async throws {
        try await withFace { test in
            for method in ["GET", "POST"] {
                let answer = try await test.exchange(
                    token(claim), method, "/echo/x", headers: header(named), #"[{"id":"r0"}]"#)
                #expect(answer.status == status && answer.text.contains(#""code":"\#(code)""#), "\(method)")
            }
            #expect(try test.gateway.batches.isEmpty)
        }
    }

    /// A face reads rows to answer a change, and shows them.
    @Test(arguments: [("read", 200, 403), ("write", 403, 403), ("read write", 200, 200), ("email", 403, 403)])
    func theScopeSaysWhetherAFaceReadsOrWrites(scope: String, read: Int, write: Int) async throws {
        try await withFace { test in
            let token = TokenGateway.token(["did": "\"k1\"", "scope": "\"\(scope)\""])
            for (method, status) in [("GET", read), ("POST", write)] {
                let answer = try await test.exchange(token, method, "/echo/x", #"[{"id":"r0"}]"#)
                #expect(answer.status == status, "\(method)")
                let challenge = answer["www-authenticate"]
                #expect(challenge == (status == 403 ? "Bearer error=\"insufficient_scope\"" : nil), "\(method)")
            }
            #expect(try test.gateway.batches.count == (write == 200 ? 1 : 0))
        }
    }
}

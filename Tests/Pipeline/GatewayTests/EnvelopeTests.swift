import FanOutLink
import Testing

@Suite(.timeLimit(.minutes(5))) struct EnvelopeTests {
    @Test(arguments: [
        ("", 0), ("  ", 2), ("{", 1), (#"{"a":1,}"#, 7), (#"{"a":01}"#, 5), (#"{"knowledgeId":"\ud800"}"#, 16),
        ("{}x", 2), (#"{"a":nul}"#, 5), ("\u{FEFF}{}", 0),
    ])
    func namesTheByteThatIsNoJSON(body: String, position: Int) async throws {
        try await withGateway { gateway in
            for target in ["/v1/sync", "/v1/upload", "/v1/pull"] {
                let answer = try await gateway.exchange("POST", target, body)
                #expect(answer.status == 400)
                #expect(answer.text.contains(#""code":"malformed_json""#))
                #expect(answer.text.hasSuffix(#","position":\#(position)}"#), "\(body): \(answer.text)")
            }
        }
    }

    @Test func reportsThePositionOfInvalidUTF8() async throws {
        try await withGateway { gateway in
            let client = try HTTPClient(port: gateway.port)
            try await client.send(
                "POST", "/v1/pull", headers: TestGateway.headers(),
                body: Array(#"{"a":""#.utf8) + [0xC0, 0x80, 0x22, 0x7D])
            let answer = try await client.answer()
            #expect(answer.status == 400)
            #expect(answer.text.hasSuffix(#","position":6}"#))
        }
    }

    @Test(arguments: [
        ("/v1/sync", "[]"), ("/v1/sync", "{}"), ("/v1/sync", "1"), ("/v1/pull", #"{"limit":1}"#),
        ("/v1/sync", #"{"knowledgeId":1}"#), ("/v1/sync", #"{"knowledgeId":null}"#),
        ("/v1/sync", #"{"knowledgeId":""}"#),
        ("/v1/sync", #"{"knowledgeId":"*"}"#), ("/v1/pull", #"{"knowledgeId":"\u002a"}"#),
        ("/v1/sync", #"{"knowledgeId":"a\u0000"}"#),
        ("/v1/sync", #"{"knowledgeId":"\#(String(repeating: "é", count: 128))"}"#),
        ("/v1/upload", #"{"knowledgeId":"k1"}"#),
        ("/v1/sync", #"{"knowledgeId":"k1","knowledgeId":"k1"}"#),
        ("/v1/sync", #"{"knowledgeId":"k1","b\u0061tch":1,"batch":1}"#),
        ("/v1/sync", #"{"knowledgeId":"k1","epoch":1}"#),
        ("/v1/upload", #"{"knowledgeId":"k1","schemaVersion":{},"batch":1}"#),
        ("/v1/sync", #"{"knowledgeId":"k1","batch":0}"#), ("/v1/sync", #"{"knowledgeId":"k1","batch":-1}"#),
        ("/v1/sync", #"{"knowledgeId":"k1","batch":1.5}"#), ("/v1/sync", #"{"knowledgeId":"k1","batch":"1"}"#),
        ("/v1/sync", #"{"knowledgeId":"k1","batch":9007199254740992}"#),
        ("/v1/sync", #"{"knowledgeId":"k1","batch":1e400}"#),
        ("/v1/sync", #"{"knowledgeId":"k1","atomic":1}"#), ("/v1/sync", #"{"knowledgeId":"k1","changes":{}}"#),
        ("/v1/upload", #"{"knowledgeId":"k1","changes":"[]"}"#), ("/v1/sync", #"{"knowledgeId":"k1","changes":null}"#),
        ("/v1/pull", #"{"knowledgeId":"k1","limit":0}"#), ("/v1/pull", #"{"knowledgeId":"k1","limit":-1}"#),
        ("/v1/pull", #"{"knowledgeId":"k1","limit":1.5}"#), ("/v1/pull", #"{"knowledgeId":"k1","limit":"1"}"#),
        ("/v1/pull", #"{"knowledgeId":"k1","compact":0}"#), ("/v1/pull", #"{"knowledgeId":"k1","wait":-1}"#),
        ("/v1/pull", #"{"knowledgeId":"k1","wait":"1"}"#), ("/v1/pull", #"{"knowledgeId":"k1","include":1}"#),
        ("/v1/pull", #"{"knowledgeId":"k1","include":[0]}"#), ("/v1/pull", #"{"knowledgeId":"k1","include":["1"]}"#),
        ("/v1/pull", #"{"knowledgeId":"k1","include":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}"#),
        ("/v1/pull", #"{"knowledgeId":"k1","knowledge":{}}"#), ("/v1/pull", #"{"knowledgeId":"k1","knowledge":[1]}"#),
    ])
    func refusesAWrongEnvelope(target: String, body: String) async throws {
        try await withGateway { gateway in
            let answer = try await gateway.exchange("POST", target, body)
            #expect(answer.status == 422, "\(body)")
            #expect(answer.text.contains(#""status":422,"code":"invalid_request""#))
            #expect(gateway.log.records.isEmpty)
        }
    }

    @Test(arguments: [
        #"{"syncId":"abc","knowledgeId":"k1"}"#, #"{"syncId":"abc","lastTimeStamp":1}"#,
        #"{"knowledgeId":"k1","lastTimeStamp":1}"#, #"{"syncId":1,"knowledgeId":"k1","lastTimeStamp":1}"#,
        #"{"syncId":"","knowledgeId":"k1","lastTimeStamp":1}"#, #"{"syncId":"abc","knowledgeId":"","lastTimeStamp":1}"#,
        #"{"syncId":"abc","knowledgeId":"a\u0000","lastTimeStamp":1}"#,
        #"{"syncId":"a\u0000","knowledgeId":"k1","lastTimeStamp":1}"#,
        #"{"syncId":"abc","knowledgeId":"k1","lastTimeStamp":-1}"#,
        #"{"syncId":"abc","knowledgeId":"k1","lastTimeStamp":9007199254740992}"#,
        #"{"syncId":"abc","knowledgeId":"k1","lastTimeStamp":1e300}"#,
        #"{"syncId":"abc","knowledgeId":"k1","lastTimeStamp":1.5}"#,
        #"{"syncId":"abc","knowledgeId":"k1","lastTimeStamp":"1"}"#,
        #"{"syncId":"abc","knowledgeId":"k1","lastTimeStamp":1,"syncId":"abc"}"#,
        #"{"syncId":"abc","knowledgeId":"k1","lastTimeStamp":1},{"syncId":"\u0061bc","knowledgeId":"k1","lastTimeStamp":2}"#,
        #"{"syncId":"abc","knowledgeId":"*","lastTimeStamp":1},{"syncId":"abc","knowledgeId":"*","lastTimeStamp":1}"#,
    ])
    func refusesAWrongVector(entries: String) async throws {
        try await withGateway { gateway in
            for target in ["/v1/sync", "/v1/pull"] {
                let answer = try await gateway.exchange(
                    "POST", target, #"{"knowledgeId":"k1","knowledge":[\#(entries)]}"#)
                #expect(answer.status == 422, "\(entries)")
                #expect(answer.text.contains(#""position":"#))
            }
        }
    }

    @Test(arguments: [
        "7", #"{"syncId":"abc","head":1}"#, #"["abc"]"#, #"[{"syncId":"abc"}]"#, #"[{"head":1}]"#,
        #"[{"syncId":"","head":1}]"#, #"[{"syncId":1,"head":1}]"#, #"[{"syncId":"a\u0000","head":1}]"#,
        #"[{"syncId":"abc","head":-1}]"#, #"[{"syncId":"abc","head":"1"}]"#, #"[{"syncId":"abc","head":1.5}]"#,
        #"[{"syncId":"abc","head":9007199254740992}]"#, #"[{"syncId":"abc","head":1,"head":1}]"#,
    ])
    func refusesWrongHeadsOfCutPages(heads: String) async throws {
        try await withGateway { gateway in
            for target in ["/v1/sync", "/v1/pull"] {
                let answer = try await gateway.exchange("POST", target, #"{"knowledgeId":"k1","cutFrom":\#(heads)}"#)
                #expect(answer.status == 422, "\(heads)")
                #expect(answer.text.contains(#""position":"#))
            }
        }
    }

    @Test func reportsThePositionOfAnInvalidField() async throws {
        try await withGateway { gateway in
            let answer = try await gateway.exchange("POST", "/v1/pull", #"{"knowledgeId":"k1","limit": 0}"#)
            #expect(
                answer.text
                    == #"{"type":"/docs/errors.md#invalid_request","title":"The request is invalid","status":422,"#
                    + #""code":"invalid_request","detail":"limit must be an integer of at least 1","position":29}"#)
        }
    }

    @Test func ignoresUnknownFields() async throws {
        try await withGateway { gateway in
            for (target, body) in [
                (
                    "/v1/pull",
                    #"{"knowledgeId":"k1","future":{"a":[1]},"batch":"x","atomic":7,"changes":0}"#
                ),
                ("/v1/sync", #"{"knowledgeId":"k1","wait":"x","include":7,"X":null}"#),
                (
                    "/v1/pull",
                    #"{"knowledgeId":"k1","knowledge":[{"syncId":"abc","knowledgeId":"k1","lastTimeStamp":0,"x":1}]}"#
                ),
            ] {
                let answer = try await gateway.exchange("POST", target, body)
                #expect(answer.status == 200, "\(answer.text)")
            }
            let upload = try await gateway.exchange(
                "POST", "/v1/upload", #"{"knowledgeId":"k1","batch":1,"limit":-1,"knowledge":0}"#)
            #expect(upload.status == 202)
        }
    }

    @Test func acceptsNullForOptionalFields() async throws {
        try await withGateway { gateway in
            let answer = try await gateway.exchange(
                "POST", "/v1/sync",
                #"{"knowledgeId":"k1","epoch":null,"schemaVersion":null,"batch":null,"cutFrom":null}"#)
            #expect(answer.text == answerHead + #""changes":[],"knowledge":[],"# + nothingMore)
            #expect(gateway.log.records.isEmpty)
        }
    }

    @Test(arguments: [
        ("1", 1), ("10000", 10_000), ("10001", 10_000), ("1e9", 10_000), ("99999999999999999999", 10_000), ("1.0", 1),
    ])
    func takesMoreThanTheHighestLimitAsThat(limit: String, expected: Int) async throws {
        try await withGateway { gateway in
            gateway.link.setIdle(false)
            let answer = try await gateway.exchange("POST", "/v1/pull", #"{"knowledgeId":"k1","limit":\#(limit)}"#)
            #expect(answer.status == 200)
            #expect(gateway.link.pulls.map(\.limit) == [expected])
        }
    }
}

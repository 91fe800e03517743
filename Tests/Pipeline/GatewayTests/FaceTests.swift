import DeviceRegistry
import FanOutLink
import Gateway
import HTTP
import JSON
import JSONText
import Metrics
import Observability
import SyncModel
import Synchronization
import TestClocks
import TestSignals
import Testing

/// What a gateway does for every face, shown with one that submits what it is sent.
@Suite(.timeLimit(.minutes(5))) struct FaceTests {
    func withFace(
        _ prepare: (inout TestGateway.Setup) -> Void = { _ in }, test: (TestGateway) async throws -> Void
    ) async throws {
        try await withGateway {
            $0.faces = GatewayFaces([EchoFace()])
            prepare(&$0)
        } test: {
            try await test($0)
        }
    }

    static let device = ["X-Device-Id: k1"]

    @Test func aPathBelongsToTheFaceWithItsPrefix() async throws {
        try await withFace { gateway in
            let answer = try await gateway.exchange("GET", "/echo/a%2Fb", headers: Self.device)
            #expect(answer.status == 200 && answer.text == #"{"device":"abc k1","parameters":"a/b"}"#)
            #expect(try await gateway.exchange("HEAD", "/echo/x", headers: Self.device).status == 200)
            for path in ["/echo", "/echo/", "/echo/x/y", "/other/x"] {
                #expect(try await gateway.exchange("GET", path, headers: Self.device).status == 404)
            }
            let refused = try await gateway.exchange("DELETE", "/echo/x", headers: Self.device)
            #expect(refused.status == 405 && refused["allow"] == "GET, POST, HEAD, OPTIONS")
            let options = try await gateway.exchange("OPTIONS", "/echo/x")
            #expect(options.status == 204 && options["allow"] == "GET, POST, HEAD, OPTIONS")
        }
        try await withGateway { gateway in
            let answer = try await gateway.exchange("GET", "/echo/x", headers: Self.device)
            #expect(answer.status == 404)
        }
    }

    @Test func theDeviceMustBeNamed() async throws {
        try await withFace { gateway in
            for headers in [[], ["X-Device-Id: *"], ["X-Device-Id: " + String(repeating: "k", count: 256)]] {
                let answer = try await gateway.exchange("GET", "/echo/x", headers: headers)
                #expect(answer.status == 422)
            }
            let unknown = try await gateway.exchange("GET", "/echo/x", as: nil, headers: Self.device)
            let banned = try await gateway.exchange("GET", "/echo/x", as: "banned", headers: Self.device)
            #expect(unknown.status == 401 && banned.status == 403)
        }
    }

    @Test func aRevokedDeviceIsRefused() async throws {
        let revoked = Device(caller: .abc, knowledgeID: .k1)
        let devices = GatewayDevices(
            registry: RecordedSightings(), isRevoked: { $0 == revoked }, revoked: { _ in [] }, revoke: { _ in },
            now: { 1 })
        try await withFace {
            $0.devices = devices
        } test: { gateway in
            let first = try await gateway.exchange("GET", "/echo/x", headers: Self.device)
            let second = try await gateway.exchange("GET", "/echo/x", headers: ["X-Device-Id: k2"])
            #expect(first.status == 403 && second.status == 200)
        }
    }

    /// Its client may read it as slowly as it likes, and the rows of a piece are those of the moment in which it is made.
    @Test func anAnswerInPiecesEndsOnceItsDeviceIsRevoked() async throws {
        let isRevoked = Mutex(false)
        let hasBegun = Signal<Void>()
        let devices = GatewayDevices(
            registry: RecordedSightings(), isRevoked: { _ in isRevoked.withLock(\.self) }, revoked: { _ in [] },
            revoke: { _ in }, now: { 1 })
        try await withFace {
            $0.devices = devices
            $0.faces = GatewayFaces([
                EchoFace {
                    // Before the status is sent, the answer would be 403.
                    await hasBegun.next()
                    isRevoked.withLock { $0 = true }
                }
            ])
        } test: { gateway in
            let client = try HTTPClient(port: gateway.port)
            try await client.send("GET", "/echo/pieces", headers: TestGateway.headers() + Self.device)
            #expect(try await client.head().status == 200)
            hasBegun.send(())
            #expect(try await !client.restOfChunks().isComplete)
            #expect(gateway.link.queries.count == 2)
        }
    }

    @Test func changesAreOneBatchWithoutANumberAndTheirOutcomeIsAwaited() async throws {
        try await withFace { gateway in
            let row =
                #"{"table":"person","id":"r1","syncId":"abc","knowledgeId":"k1","timeStamp":7,"version":2,"deleted":false,"#
                + #""writer":{"syncId":"abc","knowledgeId":"k2"},"values":{"name":"A"}}"#
            gateway.link.set(
                .results(
                    [(0, .applied(20), nil), (1, .conflict, nil), (2, .conflict, nil)],
                    summary: BatchSummary(changeCount: 3), rows: [1: row], ids: [1: "r1", 2: "r1"], head: 20),
                ofPart: 0)
            let answer = try await gateway.exchange(
                "POST", "/echo/x", headers: Self.device, #"[{"id":"r0"},{"id":"r1"},{"id":"r1"}]"#)
            // A column that is newer than the row has its default.
            let shown =
                #"{"conflict":{"name":"A","pay":"0.00"},"id":"r1","writer":"k2","by":"other","isNamed":true,"at":7}"#
            #expect(answer.text == #"[{"applied":20},\#(shown),\#(shown)]"#)
            let batch = try #require(try gateway.batches.first)
            #expect(batch.batch == nil && batch.isAtomic && batch.device.knowledgeID == .k1)
            #expect(batch.grants == [Grant(owner: .abc, access: .write)])
            #expect(String(decoding: batch.changes, as: UTF8.self) == #"[{"id":"r0"},{"id":"r1"},{"id":"r1"}]"#)
        }
    }

    /// What a face adds by itself, such as a condition, does not make a request too large.
    @Test func theLimitOfChangesIsForWhatWasAskedFor() async throws {
        try await withFace {
            $0.limits.outcome.maxChanges = 2
        } test: { gateway in
            gateway.link.set(
                .results(
                    (0..<3).map { ($0, .applied(20), nil) }, summary: BatchSummary(changeCount: 3), head: 20),
                ofPart: 0)
            let own = try await gateway.exchange(
                "POST", "/echo/x", headers: Self.device, #"[{"id":"r0"},{"id":"r1"},{"id":"own"}]"#)
            #expect(own.status == 200)
            // The stages after the gateway take as many.
            #expect(try gateway.batches.map(\.limits.maxChanges) == [3])
            let asked = try await gateway.exchange(
                "POST", "/echo/x", headers: Self.device, #"[{"id":"r0"},{"id":"r1"},{"id":"r2"}]"#)
            #expect(asked.status == 413 && asked.text.contains("\"batch_too_large\""))
            #expect(try gateway.batches.count == 1)
        }
    }

    /// Values are copied as the stream has them, so nothing in one may be taken for the row's own.
    @Test(arguments: [
        (#"{"syncId":"abc","knowledgeId":"k1"}"#, "device"), (#"{"syncId":"xyz","knowledgeId":"k1"}"#, "namesake"),
        (#"{"syncId":"abc","knowledgeId":"say \"k1\""}"#, "other"),
    ]) func aRowIsShownAsItIs(writer: String, by: String) async throws {
        try await withFace { gateway in
            let id = #"a\"b\\c\u0001é\n"#
            let name = #""\\\",\"writer\":{\"syncId\":\"abc\"}, {[ \"""#
            let row =
                #"{"table":"person","id":"\#(id)","syncId":"abc","knowledgeId":"k\"9","timeStamp":7,"version":2,"#
                + #""deleted":false,"writer":\#(writer),"values":{"name":\#(name),"pay":"1.50"}}"#
            gateway.link.set(
                .results(
                    [(0, .conflict, nil)], summary: BatchSummary(changeCount: 1), rows: [0: row],
                    ids: [0: "a\"b\\c\u{1}é\n"], head: 20),
                ofPart: 0)
            let answer = try await gateway.exchange(
                "POST", "/echo/x", headers: Self.device, #"[{"id":"\#(id)"}]"#)
            let author = writer.split(separator: #""knowledgeId":"#)[1].dropLast()
            let shown =
                #"{"conflict":{"name":\#(name),"pay":"1.50"},"id":"\#(id)","writer":\#(author),"by":"\#(by)","isNamed":true,"at":7}"#
            #expect(answer.text == "[\(shown)]")
        }
    }

    @Test func aRowOfANewerSchemaIsNotShownInPart() async throws {
        try await withFace { gateway in
            let row =
                #"{"table":"person","id":"r1","syncId":"abc","knowledgeId":"k1","timeStamp":7,"version":2,"deleted":false,"#
                + #""writer":{"syncId":"abc","knowledgeId":"k2"},"values":{"name":"A","pay":"1.50","new":1}}"#
            gateway.link.set(
                .results(
                    [(0, .conflict, nil)], summary: BatchSummary(changeCount: 1), rows: [0: row], ids: [0: "r1"],
                    head: 20), ofPart: 0)
            let answer = try await gateway.exchange("POST", "/echo/x", headers: Self.device, #"[{"id":"r1"}]"#)
            #expect(answer.status == 503 && answer.text.contains("\"not_ready\""))
        }
    }

    @Test func anOutcomeThatIsNotKnownInTimeMayBeAskedForAgain() async throws {
        try await withFace { gateway in
            let answer = try await gateway.exchange("POST", "/echo/x", headers: Self.device, #"[{"id":"r0"}]"#)
            #expect(answer.status == 503 && answer.text.contains("\"outcome_pending\"") && answer["retry-after"] == "1")
        }
    }

    /// An answer that fits one piece is the cheapest, and of one in pieces a slow client holds several.
    @Test func theFirstPieceOfAnAnswerMayBeLargerThanTheOthers() async throws {
        try await withFace { gateway in
            let answer = try await gateway.exchange("GET", "/echo/pieces", headers: Self.device)
            #expect(answer.status == 200 && answer.text == "123")
            #expect(gateway.link.queries.map(\.maximumBytes) == [1 << 20, 512 << 10, 512 << 10])
        }
    }

    /// The time in which a client must make space for a piece is not that in which the piece is made.
    @Test func aPieceMayTakeLongerToMakeThanAClientMayBeSilent() async throws {
        let clock = Mutex<ManualClock?>(nil)
        let keepAlive = Duration.seconds(15)
        try await withFace {
            $0.configuration.keepAlive = keepAlive
            $0.faces = GatewayFaces([
                EchoFace {
                    guard let clock = clock.withLock(\.self) else { return }
                    for _ in 0..<3 {
                        // Returns at once where the answer was broken off.
                        await clock.sleeper(for: keepAlive)
                        clock.advance(by: keepAlive)
                    }
                }
            ])
        } test: { gateway in
            clock.withLock { $0 = gateway.clock }
            // Then nothing else sleeps as long.
            gateway.clock.advance(by: .seconds(1))
            let client = try HTTPClient(port: gateway.port)
            try await client.send("GET", "/echo/pieces", headers: TestGateway.headers() + Self.device)
            #expect(try await client.head().status == 200)
            let answer = try await client.restOfChunks()
            #expect(answer.isComplete && answer.text == "123")
        }
    }

    /// The status is sent by then, so that nothing but the broken connection and the operators' figures tell of it.
    @Test func anAnswerThatFailsInTheMiddleIsCountedAndLogged() async throws {
        let (lines, registry) = (Lines(), MetricRegistry())
        try await withFace {
            $0.logger = Logger(label: "gateway", output: LogOutput(format: .text, to: lines), level: .info)
            $0.metrics = registry
        } test: { gateway in
            let client = try HTTPClient(port: gateway.port)
            try await client.send("GET", "/echo/broken", headers: TestGateway.headers() + Self.device)
            #expect(try await client.head().status == 200)
            #expect(try await !client.restOfChunks().isComplete)
            #expect(registry.counter(.gatewayProblems, [.reason: ProblemCode.notReady.rawValue]).value == 1)
            let reported = lines.all.filter { $0.contains("broken off") }
            #expect(reported.count == 1 && reported[0].contains("no stream") && reported[0].contains("not_ready"))
        }
    }

    @Test func aSchemaThatAFaceCannotServeIsNamed() async throws {
        let faces = GatewayFaces([EchoFace(reserved: "pay")])
        #expect(faces.problem(with: TestGateway.schemas.newest!.schema) == "the face under /echo: pay is reserved")
        try await withFace {
            $0.faces = faces
        } test: { gateway in
            let answer = try await gateway.exchange("GET", "/echo/x", headers: Self.device)
            #expect(answer.status == 503 && answer.text.contains("pay is reserved"))
        }
    }
}

private final class Lines: LogSink {
    private let lines = Mutex<[String]>([])

    var all: [String] { lines.withLock { $0 } }

    func write(_ line: [UInt8]) { lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) } }
}

/// A face that submits the array of changes that it is sent, atomically, and answers in pieces where it is asked for some.
///
/// The change of the row `own` is one that it adds by itself. It refuses changes without an id.
struct EchoFace: Face {
    var reserved = ""
    /// What happens while a piece but the first is made.
    var making: @Sendable () async -> Void = {}

    var prefix: String { "echo" }
    var routes: [FaceRoute] { [FaceRoute("/echo/{name}", [.get, .post])] }

    func problem(with schema: Schema) -> String? {
        let columns = schema.tables.flatMap(\.columns).map(\.name)
        return columns.contains(reserved) ? "\(reserved) is reserved" : nil
    }

    func respond(to request: FaceRequest, _ session: any FaceSession) async throws -> HTTPResponse {
        var writer = JSONWriter()
        if request.parameters == ["broken"] {
            let isFirst = Mutex(true)
            return try await session.stream([]) {
                let isFirst = isFirst.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst
                }
                guard isFirst else { throw Problem(.notReady, "no stream") }
                return FacePiece(Array("1".utf8), isLast: false)
            }
        }
        if request.parameters == ["pieces"] {
            let count = Mutex(0)
            return try await session.stream([]) {
                _ = try await session.rows(.table(0, after: nil), limit: 1, leastHead: .zero)
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                if number > 1 { await making() }
                return FacePiece(Array("\(number)".utf8), isLast: number == 3)
            }
        }
        if request.method == .get {
            writer.object { writer in
                writer.member("device", "\(session.device.caller) \(session.device.knowledgeID)")
                writer.member("parameters", request.parameters.joined(separator: " "))
            }
            return .json(200, writer.take())
        }
        var refused = (count: 0, bytes: 0)
        let ids = try session.parse(request.http.body) { root throws(Problem) in
            var ids: [String] = []
            guard var elements = root.elements else { throw Problem(.invalidRequest, "no array") }
            while let element = elements.next() {
                guard let id = element.member(named: "id")?.string else {
                    refused.count += 1
                    refused.bytes += element.sourceBytes.count
                    continue
                }
                ids.append(id.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })
            }
            return ids
        }
        var batch = FaceBatch(isAtomic: true)
        for id in ids { batch.add(isLimited: id != "own") { $0.member("id", id) } }
        batch.addRefused(refused.count, bytes: refused.bytes)
        let outcome = try await session.submit(batch)
        let table = session.schema.schema.tables[0]
        try writer.array { writer in
            for result in outcome.results {
                let isNamed = try result.row.map { ids.contains(try $0.id.text) } ?? false
                writer.object { writer in
                    if case .applied(let time, _) = result.status { writer.member("applied", time.rawValue) }
                    guard let row = result.row else { return }
                    writer.name("conflict")
                    writer.object { row.writeColumns(of: table, to: &$0) }
                    writer.name("id")
                    row.writeID(to: &writer)
                    writer.name("writer")
                    row.writeWriter(to: &writer)
                    writer.member("by", "\(row.writer)")
                    writer.member("isNamed", isNamed)
                    writer.member("at", row.timeStamp.rawValue)
                }
            }
        }
        return .json(200, writer.take())
    }
}

import FanOutLink
import HTTP
import SyncModel
import Synchronization
import TestClocks
import Testing

@testable import Gateway

/// What requests to faces take of the limits of memory and of rates.
extension FaceTests {
    /// Sends changes that are all conflicts, whose rows exceed a page and are read one by one.
    ///
    /// - Parameter read: called while a row is read.
    private func withLargeConflicts(_ read: @escaping @Sendable (TestGateway, StreamQuery) -> Void) async throws {
        try await withFace {
            $0.configuration.pageBytes = 1 << 10
            $0.limits.outcome.maxRowBytes = 1 << 20
            $0.limits.outcome.maxBatchRowBytes = 5 << 19
        } test: { gateway in
            let name = String(repeating: "n", count: 600)
            let rows = (0..<4).map { number in
                #"{"table":"person","id":"r\#(number)","syncId":"abc","knowledgeId":"k1","timeStamp":7,"version":2,"#
                    + #""deleted":false,"writer":{"syncId":"abc","knowledgeId":"k2"},"values":{"name":"\#(name)"}}"#
            }
            gateway.link.set(
                .results(
                    rows.indices.map { ($0, .conflict, nil) }, summary: BatchSummary(changeCount: rows.count),
                    rows: Dictionary(uniqueKeysWithValues: rows.enumerated().map { ($0, $1) }), head: 20), ofPart: 0)
            gateway.link.answerQueries { query in
                read(gateway, query)
                var found = StreamRows(head: TimeStamp(20))
                guard case .ids(_, let ids) = query.selection else { return found }
                for row in rows where ids.contains(where: { row.contains(#""id":"\#($0.text)""#) }) {
                    found.append(
                        table: 0, timeStamp: TimeStamp(7), createdAt: 0, isExact: true, columns: 1,
                        json: Array(row.utf8).span.bytes)
                }
                return found
            }
            let body = "[" + rows.indices.map { #"{"id":"r\#($0)"}"# }.joined(separator: ",") + "]"
            let answer = try await gateway.exchange("POST", "/echo/x", headers: Self.device, body)
            #expect(answer.text.matches(of: /"id":"(r\d)"/).map { String($0.1) } == ["r0", "r1", "r2", "r3"])
        }
    }

    /// All of them are in memory until the answer is made.
    @Test func spaceForTheRowsOfConflictsIsReservedBeforeTheyAreRead() async throws {
        let reserved = Mutex<[Int]>([])
        try await withLargeConflicts { gateway, _ in
            reserved.withLock { $0.append(gateway.service.counters.http.answerBytesInFlight) }
        }
        // A page, and of all rows, which are those below the batch's limit and the one that reaches it, each and its text.
        #expect(reserved.withLock(\.self) == Array(repeating: (1 << 10) + (7 << 20), count: 3))
    }

    /// In a stream that is behind, they are as they were before the conflict, or are not there.
    @Test func rowsOfConflictsThatAreReadOneByOneAreNotOlderThanTheOutcome() async throws {
        let leastHeads = Mutex<[TimeStamp]>([])
        try await withLargeConflicts { _, query in leastHeads.withLock { $0.append(query.leastHead) } }
        #expect(leastHeads.withLock(\.self) == Array(repeating: TimeStamp(20), count: 3))
    }

    @Test func uploadsTakeTheRatesOfUploads() async throws {
        try await withFace {
            $0.configuration.deviceRates = Rates(requests: 100, changes: 1, bytes: 1 << 20)
        } test: { gateway in
            gateway.link.set(
                .results([(0, .applied(20), nil)], summary: BatchSummary(changeCount: 1)), ofPart: 0)
            for _ in 0..<10 {
                let answer = try await gateway.exchange("POST", "/echo/x", headers: Self.device, #"[{"id":"r0"}]"#)
                #expect(answer.status == 200)
            }
            let answer = try await gateway.exchange("POST", "/echo/x", headers: Self.device, #"[{"id":"r0"}]"#)
            #expect(answer.status == 429)
            #expect(try await gateway.exchange("GET", "/echo/x", headers: Self.device).status == 200)
        }
    }

    /// What has begun is not broken off.
    @Test func aPieceWaitsUntilTheDeviceMayPullMore() async throws {
        try await withFace {
            $0.configuration.deviceRates = Rates(pulledBytes: 1)
        } test: { gateway in
            let device = Device(caller: .abc, knowledgeID: KnowledgeID(unchecked: "k1"))
            let queries = Mutex(0)
            gateway.link.answerQueries { _ in
                let isFirst = queries.withLock { queries in
                    queries += 1
                    return queries == 1
                }
                gateway.handler.rates.pulled(isFirst ? 10 : 1, by: device)
                return StreamRows(head: TimeStamp(20))
            }
            let client = try HTTPClient(port: gateway.port)
            try await client.send("GET", "/echo/pieces", headers: TestGateway.headers() + Self.device)
            #expect(try await client.head().status == 200)
            for piece in 1...2 {
                await gateway.clock.sleeper(for: .seconds(2))
                #expect(queries.withLock(\.self) == piece)
                gateway.clock.advance(by: .seconds(2))
            }
            let rest = try await client.restOfChunks()
            #expect(rest.isComplete)
            // Another request does not begin before.
            #expect(try await gateway.exchange("GET", "/echo/pieces", headers: Self.device).status == 429)
        }
    }

    /// Not what the face refuses, which is not appended.
    @Test func uploadsTakeOfWhatADayAllows() async throws {
        try await withFace {
            $0.configuration.callerRates = Rates(dailyBytes: 1000)
        } test: { gateway in
            gateway.link.set(
                .results([(0, .applied(20), nil)], summary: BatchSummary(changeCount: 1)), ofPart: 0)
            for (body, status) in [("[{}]", 200), (#"[{"id":"r0"}]"#, 200), (#"[{"id":"r0"}]"#, 429), ("[{}]", 200)] {
                let answer = try await gateway.exchange("POST", "/echo/x", headers: Self.device, body)
                #expect(answer.status == status)
            }
        }
    }

    /// Of a body that has nothing to append, too.
    @Test func changesThatAFaceRefusesTakeTheRatesOfUploads() async throws {
        for rates in [Rates(requests: 100, changes: 1), Rates(requests: 100, bytes: 2)] {
            try await withFace {
                $0.configuration.deviceRates = rates
            } test: { gateway in
                let refused = "[" + Array(repeating: "{}", count: 10).joined(separator: ",") + "]"
                let first = try await gateway.exchange("POST", "/echo/x", headers: Self.device, refused)
                #expect(first.status == 200 && first.text == "[]")
                let second = try await gateway.exchange("POST", "/echo/x", headers: Self.device, refused)
                #expect(second.status == 429)
                #expect(try gateway.batches.isEmpty)
            }
        }
    }
}

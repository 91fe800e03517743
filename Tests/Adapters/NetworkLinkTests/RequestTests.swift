import FanOutLink
import NetworkLink
import SyncModel
import Testing

/// Requests over the network have the responses of a fan-out in the same process.
@Suite(.timeLimit(.minutes(5))) struct RequestTests {
    @Test func everyRequestHasTheResponseOfAFanOutInTheProcess() async throws {
        let served = try await ServedFanOut()
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.served()
        let owner = Sample.owner(of: 3)
        served.fanOut.append(Sample.rows(1...5), to: owner)

        let request = Sample.pull([owner], limit: 3)
        #expect(try await gateway.remote.pull(request, within: .seconds(1)) == served.fanOut.pages(request))
        #expect(try await gateway.remote.heads(of: [owner, Sample.owner(of: 4)]) == [TimeStamp(5), .zero])
        let key = Sample.part(of: owner).key
        let kept = try await gateway.remote.keptOutcome(of: 7, for: key, rows: .all, within: .zero)
        #expect(kept == PartOutcome(isRepeat: true, rows: [3: Array("{\"a\":1}".utf8)]))
        #expect(try await gateway.remote.keptOutcome(of: 8, for: key, rows: .all, within: .zero) == nil)

        async let outcome = gateway.remote.outcome(of: Sample.part(of: owner), rows: .all, within: .seconds(10))
        await served.fanOut.waits.until { $0.count == 1 }
        let result = ChangeResult(
            index: 2, table: 1, id: RowID(unchecked: "r"),
            status: .applied(timeStamp: TimeStamp(9), version: 2, knowledgeID: Sample.device), heldFrom: .zero)
        let decided = PartOutcome(results: [result], summary: BatchSummary(changeCount: 1))
        served.fanOut.decide(Sample.part(of: owner), decided)
        #expect(try await outcome == decided)

        await #expect(throws: FanOutError.pending) {
            try await gateway.remote.outcome(of: Sample.part(of: owner), rows: .all, within: .zero)
        }
        await gateway.remote.stop()
        await served.server.stop()
    }

    @Test func everyQueryOfRowsHasTheResponseOfAFanOutInTheProcess() async throws {
        let served = try await ServedFanOut()
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.served()
        let owner = Sample.owner(of: 3)
        let longest = RowID(unchecked: String(repeating: "i", count: 255))
        let selections: [StreamQuery.Selection] = [
            .ids(table: 0, []), .ids(table: 7, [longest, RowID(unchecked: "b")]),
            .table(0, after: nil), .table(2, after: longest),
            .changes(above: .zero, upTo: .maximum, table: nil), .changes(above: TimeStamp(3), upTo: .zero, table: 0),
        ]
        for (number, selection) in selections.enumerated() {
            let query = StreamQuery(
                of: owner, selection, limit: number + 1, maximumBytes: number * 1000,
                leastHead: TimeStamp(Int64(number)))
            // Another history, as long as nothing is set.
            #expect(try await gateway.remote.rows(query, within: .zero) == nil)
            var answer = StreamRows(
                head: TimeStamp(Int64(number)), rest: number % 2 == 0 ? nil : selections[number - 1])
            for row in 0..<number {
                let json = Array("{\"id\":\(row * 99)}".utf8)
                answer.append(
                    table: row, timeStamp: TimeStamp(Int64(row)), createdAt: Int64(row) - 1, isExact: row % 2 == 0,
                    columns: row * 7, json: json.span.bytes)
            }
            served.fanOut.set(answer, for: query)
            #expect(try await gateway.remote.rows(query, within: .zero) == answer)
        }
        served.fanOut.setReady(false, owner)
        await #expect(throws: FanOutError.self) {
            try await gateway.remote.rows(StreamQuery(of: owner, .table(0, after: nil)), within: .zero)
        }
        await gateway.remote.stop()
        await served.server.stop()
    }

    @Test func cancelledRequestIsCancelledAtTheFanOut() async throws {
        let served = try await ServedFanOut()
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.served()
        let part = Sample.part(of: Sample.owner(of: 0))
        let task = Task { try await gateway.remote.outcome(of: part, rows: .all, within: .seconds(100)) }
        await served.fanOut.waits.until { $0.count == 1 }
        task.cancel()
        await served.fanOut.cancelled.until { $0 == [part] }
        await #expect(throws: FanOutError.closed) { try await task.value }
        await gateway.remote.stop()
        await served.server.stop()
    }

    @Test func stoppingTheGatewayEndsItsRequests() async throws {
        let served = try await ServedFanOut()
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.served()
        let part = Sample.part(of: Sample.owner(of: 0))
        let task = Task { try await gateway.remote.outcome(of: part, rows: .all, within: .seconds(100)) }
        await served.fanOut.waits.until { $0.count == 1 }
        await gateway.remote.stop()
        await #expect(throws: FanOutError.closed) { try await task.value }
        await #expect(throws: FanOutError.self) { try await gateway.remote.heads(of: [Sample.owner(of: 0)]) }
        // The server notices that heartbeats are missing.
        for _ in 0..<4 { await served.clock.heartbeat() }
        await served.fanOut.cancelled.until { $0 == [part] }
        await served.server.stop()
    }

    @Test func tooManyRequestsAtTheFanOutAreNotReady() async throws {
        let served = try await ServedFanOut { $0.maximumRequestsOfGateway = 2 }
        let gateway = try await ConnectedGateway(to: [served.address], maximumRequests: 3)
        await gateway.served()
        let owner = Sample.owner(of: 0)
        let tasks = (1...2).map { number in
            Task {
                try await gateway.remote.outcome(
                    of: Sample.part(of: owner, Int64(number)), rows: .all, within: .seconds(100))
            }
        }
        await served.fanOut.waits.until { $0.count == 2 }
        await #expect(throws: FanOutError.notReady("too many requests are in flight")) {
            try await gateway.remote.heads(of: [owner])
        }
        for task in tasks { task.cancel() }
        await served.fanOut.cancelled.until { $0.count == 2 }
        #expect(try await gateway.remote.heads(of: [owner]) == [.zero])
        await gateway.remote.stop()
        await served.server.stop()
    }

    @Test func tooManyRequestsOfTheGatewayAreNotReady() async throws {
        let served = try await ServedFanOut()
        let gateway = try await ConnectedGateway(to: [served.address], maximumRequests: 1)
        await gateway.served()
        let owner = Sample.owner(of: 0)
        let task = Task {
            try await gateway.remote.outcome(of: Sample.part(of: owner), rows: .all, within: .seconds(100))
        }
        await served.fanOut.waits.until { $0.count == 1 }
        await #expect(throws: FanOutError.notReady("too many requests to one fan-out are in flight")) {
            try await gateway.remote.heads(of: [owner])
        }
        task.cancel()
        await gateway.remote.stop()
        await served.server.stop()
    }

    @Test func requestWithoutResponseTimesOut() async throws {
        let served = try await ServedFanOut()
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.served()
        let part = Sample.part(of: Sample.owner(of: 0))
        let task = Task { try await gateway.remote.outcome(of: part, rows: .all, within: .seconds(1)) }
        await served.fanOut.waits.until { $0.count == 1 }
        // A second, and the answer timeout of five; other requests keep the connection up.
        for _ in 0..<8 {
            await gateway.heartbeat()
            _ = try await gateway.remote.heads(of: [Sample.owner(of: 1)])
        }
        await #expect(throws: FanOutError.notReady("the fan-out did not respond in time")) { try await task.value }
        await served.fanOut.cancelled.until { $0 == [part] }
        await gateway.remote.stop()
        await served.server.stop()
    }

    private func report(_ offset: Int64) -> StreamReport {
        StreamReport(partition: 2, uploads: [2: UploadProgress(offset: offset, part: 0)])
    }

    @Test func passedUploadsAreReportedInOrder() async throws {
        let served = try await ServedFanOut()
        served.server.passed(report(5))
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.passed.until { $0.contains(report(5)) }
        for offset in 6...1000 as ClosedRange<Int64> { served.server.passed(report(offset)) }
        await gateway.passed.until { $0.last == report(1000) }
        let offsets = gateway.passed.values.compactMap(\.passed?.offset)
        #expect(offsets.sorted() == offsets)
        await gateway.remote.stop()
        await served.server.stop()
    }

    /// A gateway that was away must not wait for what it has missed.
    @Test func aGatewayThatConnectsLearnsAllThatStreamsHaveApplied() async throws {
        let served = try await ServedFanOut()
        let first = try await ConnectedGateway(to: [served.address])
        await first.connected(1)
        let reports = [
            StreamReport(
                partition: 1, uploads: [1: UploadProgress(offset: 9, part: 0)], partsElsewhere: [0: 8, 2: 9]),
            StreamReport(
                partition: 1, uploads: [2: UploadProgress(offset: 3, part: 1)],
                largeParts: [
                    StreamReport.LargePart(
                        source: 2, progress: UploadProgress(offset: 3, part: 1),
                        device: Device(caller: SyncID(unchecked: "abc"), knowledgeID: Sample.device),
                        touchedBytes: 5000)
                ]),
            StreamReport(partition: 1),
        ]
        for (count, report) in reports.enumerated() {
            served.server.passed(report)
            await first.passed.until { $0.count == count + 1 }
        }
        // Each names only what it has changed, which is progress even if it is nothing.
        #expect(first.passed.values == reports)
        let second = try await ConnectedGateway(to: [served.address])
        await second.passed.until { !$0.isEmpty }
        var all = reports[0]
        all.merge(reports[1])
        // Large parts count when they are reported, and not once more.
        all = all.lasting
        #expect(second.passed.values == [all])
        await first.remote.stop()
        await second.remote.stop()
        await served.server.stop()
    }
}

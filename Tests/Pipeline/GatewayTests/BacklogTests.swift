import FanOutLink
import Gateway
import SyncModel
import TestClocks
import Testing

/// Uploads are refused while those before them wait too long (I10).
@Suite(.timeLimit(.minutes(5))) struct BacklogTests {
    private static let lag = Duration.seconds(60)
    private let backlog = UploadBacklog(partitions: 4, maximumLag: Self.lag)

    /// Runs a gateway whose callers' windows do not shrink.
    private func withBacklog(_ test: (TestGateway) async throws -> Void) async throws {
        try await withGateway {
            $0.backlog = backlog
            $0.configuration.callerLag = .seconds(3600)
        } test: { gateway in
            try await test(gateway)
        }
    }

    private func upload(_ gateway: TestGateway, as caller: String = "abc") async throws -> HTTPClient.Answer {
        try await gateway.exchange("POST", "/v1/upload", as: caller, #"{"knowledgeId":"k1","changes":[{}]}"#)
    }

    /// Uploads a change for another owner.
    private func isTaken(_ gateway: TestGateway, for owner: String, links: String) async throws -> Bool {
        try await gateway.exchange(
            "POST", "/v1/upload", links: links, #"{"knowledgeId":"k1","changes":[{},{"syncId":"\#(owner)"}]}"#
        ).status == 202
    }

    /// A caller of another partition.
    private func other() throws -> String {
        try #require(["a", "b", "c", "d", "e"].first { reference(0, of: $0).partition != reference(0).partition })
    }

    private func isTaken(_ gateway: TestGateway, as caller: String = "abc") async throws -> Bool {
        try await upload(gateway, as: caller).status == 202
    }

    private func reference(_ offset: Int64, of caller: String = "abc") -> UploadReference {
        UploadReference(
            partition: Partitioning(count: 4).partition(of: SyncID(unchecked: caller)), offset: offset)
    }

    @Test func aLaggingPartitionRefusesUploadsUntilItCatchesUp() async throws {
        let other = try other()
        try await withBacklog { (gateway: TestGateway) async throws -> Void in
            #expect(try await isTaken(gateway))
            gateway.clock.advance(by: .seconds(30))
            #expect(try await isTaken(gateway))
            gateway.clock.advance(by: .seconds(30))
            #expect(try await isTaken(gateway))
            gateway.clock.advance(by: .milliseconds(1))
            let refusal = try await upload(gateway)
            #expect(refusal.status == 503)
            #expect(refusal["retry-after"] == "5")
            #expect(refusal.text.contains(#""code":"overloaded""#))
            let sync = try await gateway.exchange(
                "POST", "/v1/sync", #"{"knowledgeId":"k1","batch":1,"changes":[{}]}"#)
            #expect(sync.status == 503)
            // Others, and those who only read, go on.
            #expect(try await isTaken(gateway, as: other))
            let pull = try await gateway.exchange("POST", "/v1/sync", #"{"knowledgeId":"k1"}"#)
            #expect(pull.status == 200)
            #expect(gateway.log.records.count == 4)

            // The second has waited for 30 seconds.
            backlog.passed(reference(0))
            #expect(try await isTaken(gateway))
            gateway.clock.advance(by: .seconds(30))
            #expect(try await upload(gateway).status == 503)
            backlog.passed(reference(3))
            #expect(try await isTaken(gateway))
        }
    }

    @Test func aBatchForAnOwnerWhosePartitionLagsIsRefused() async throws {
        let other = try other()
        let links = "\(other):write"
        try await withBacklog { (gateway: TestGateway) async throws -> Void in
            #expect(try await isTaken(gateway, as: other))
            gateway.clock.advance(by: Self.lag)
            #expect(try await isTaken(gateway, for: other, links: links))
            gateway.clock.advance(by: .milliseconds(1))
            #expect(try await !isTaken(gateway, for: other, links: links))
            // What has no part there continues.
            #expect(try await isTaken(gateway))
            #expect(try await isTaken(gateway, for: other, links: "\(other):read"))
            #expect(try await isTaken(gateway, for: "unknown", links: links))
            backlog.passed(reference(100))
            // One a second is accepted, and one of the partition's own callers besides.
            #expect(try await !isTaken(gateway, as: other))
            gateway.clock.advance(by: .seconds(1))
            #expect(try await isTaken(gateway, for: other, links: links))
            #expect(try await !isTaken(gateway, for: other, links: links))
            #expect(try await isTaken(gateway, as: other))
            #expect(try await !isTaken(gateway, as: other))
            backlog.passed(reference(1, of: other))
            for _ in 0..<2 { #expect(try await isTaken(gateway, for: other, links: links)) }
        }
    }

    @Test func anUploadKeepsItsPlaceUntilThePartitionOfAnotherOwnerHasPassedIt() async throws {
        let other = try other()
        let links = "\(other):write"
        let (own, there) = (reference(0).partition, reference(0, of: other).partition)
        try await withBacklog { (gateway: TestGateway) async throws -> Void in
            for _ in 0..<4 { #expect(try await isTaken(gateway, for: other, links: links)) }
            let progress = UploadProgress(offset: 3, part: 0)
            backlog.passed(StreamReport(partition: own, uploads: [own: progress], partsElsewhere: [there: 3]))
            let waiting = Task { try await isTaken(gateway, for: other, links: links) }
            await gateway.clock.sleeper(for: .seconds(5))
            #expect(gateway.log.records.count == 4)
            backlog.passed(StreamReport(partition: there, uploads: [own: UploadProgress(offset: 0, part: 1)]))
            #expect(try await waiting.value)
        }
    }

    @Test func refusedRecordsDoNotCountAsLag() async throws {
        try await withBacklog { (gateway: TestGateway) async throws -> Void in
            for _ in 0..<3 { #expect(try await isTaken(gateway)) }
            // In any order: ingest tells of one, the fan-out of the others.
            backlog.refused(reference(2))
            backlog.refused(reference(0))
            gateway.clock.advance(by: Self.lag + .seconds(1))
            #expect(try await upload(gateway).status == 503)
            backlog.passed(reference(1))
            #expect(try await isTaken(gateway))
        }
    }

    @Test func anUploadThatPassedBeforeItsAppendWasRecordedDoesNotCount() async throws {
        try await withBacklog { (gateway: TestGateway) async throws -> Void in
            backlog.passed(reference(1))
            for _ in 0..<2 { #expect(try await isTaken(gateway)) }
            gateway.clock.advance(by: Self.lag * 2)
            #expect(try await isTaken(gateway))
            gateway.clock.advance(by: Self.lag * 2)
            #expect(try await upload(gateway).status == 503)
        }
    }

    @Test func anUnreportedRecordDoesNotBlockItsPartitionPermanently() async throws {
        try await withBacklog { (gateway: TestGateway) async throws -> Void in
            // Ingest refuses it as a whole, in another process.
            #expect(try await isTaken(gateway))
            gateway.clock.advance(by: Self.lag + .milliseconds(1))
            #expect(try await upload(gateway).status == 503)
            gateway.clock.advance(by: .milliseconds(999))
            #expect(try await upload(gateway).status == 503)
            gateway.clock.advance(by: .milliseconds(1))
            #expect(try await isTaken(gateway))
            #expect(try await upload(gateway).status == 503)
            backlog.passed(reference(1))
            for _ in 0..<3 { #expect(try await isTaken(gateway)) }
        }
    }

    @Test func aRealBacklogGrowsByOneUploadASecondAndIsReported() async throws {
        try await withBacklog { (gateway: TestGateway) async throws -> Void in
            #expect(try await isTaken(gateway))
            gateway.clock.advance(by: Self.lag + .milliseconds(1))
            #expect(try await upload(gateway).status == 503)
            // Each has fewer than the largest window.
            let callers = (0...).lazy.map { "caller\($0)" }.filter {
                reference(0, of: $0).partition == reference(0).partition
            }
            var taken: Int64 = 0
            for caller in (0..<100).flatMap({ _ in callers.prefix(5) }) {
                gateway.clock.advance(by: .milliseconds(500))
                if try await isTaken(gateway, as: caller) { taken += 1 }
            }
            #expect(taken == 250)
            // The newest that has passed is older than the bound, then younger by far.
            backlog.passed(reference(taken - 90))
            #expect(try await upload(gateway).status == 503)
            backlog.passed(reference(taken - 20))
            for _ in 0..<3 { #expect(try await isTaken(gateway)) }
        }
    }
}

import DeviceRegistry
import FanOutLink
import HTTP
import SyncModel
import Synchronization
import Testing

@testable import Gateway

/// What a request to a face has in memory of devices and files, while its client takes its time (I10).
@Suite(.timeLimit(.minutes(5))) struct FaceDeviceTests {
    /// From the second page on what the response has of them counts, too.
    @Test(arguments: [("looking", 1 << 20), ("keeping", 8 << 20)])
    func aCallersDevicesAreInMemoryPageByPageWithinTheShareOfResponses(what: String, later: Int) async throws {
        let registry = ListedDevices(count: 400)
        try await withGateway {
            $0.faces = GatewayFaces([ListFace()])
            $0.devices = GatewayDevices(
                registry: registry, isRevoked: { _ in false }, revoked: { _ in [] }, revoke: { _ in }, now: { 1 })
        } test: { gateway in
            let budget = gateway.handler.responseBudget
            registry.sample.withLock { $0 = { budget.inFlight } }
            let answer = try await gateway.exchange("GET", "/list/\(what)", headers: ["X-Device-Id: k1"])
            #expect(answer.status == 200 && answer.text == "400")
            #expect(registry.pages.withLock(\.self) == [1 << 20, later, later])
            // Given back by the server's thread, which may be later than its client has read the answer.
            while budget.inFlight > 0 { await Task.yield() }
        }
    }

    @Test func aChunkOfAFileCountsUntilItsLastPieceIsTaken() async throws {
        let budget = ResponseBudget(limit: 1 << 20)
        let reader = FileReader(0..<150_000)
        reader.add(
            [UInt8](repeating: 1, count: 150_000)[...], try await budget.reserve(150_000, for: "abc", timeout: {}))
        for isLast in [false, false, true] {
            #expect(budget.inFlight == 150_000)
            #expect(reader.piece()?.isLast == isLast)
        }
        #expect(budget.inFlight == 0 && reader.piece() == nil)
    }
}

/// Answers how many devices its caller has.
private struct ListFace: Face {
    let prefix = "list"
    let routes = [FaceRoute("/list/{what}", [.get])]

    func problem(with schema: Schema) -> String? { nil }

    func respond(to request: FaceRequest, _ session: any FaceSession) async throws -> HTTPResponse {
        var ids: Set<KnowledgeID> = []
        let isKeeping = request.parameters == ["keeping"]
        try await session.devices(isKeeping: isKeeping) { ids.insert($0.knowledgeID) }
        return .json(200, Array("\(ids.count)".utf8))
    }
}

/// As many devices of every caller.
private final class ListedDevices: PartialRegistry {
    let count: Int
    /// What was reserved at each page.
    let pages = Mutex<[Int]>([])
    let sample = Mutex<@Sendable () -> Int>({ 0 })

    init(count: Int) { self.count = count }

    func devices(
        of caller: SyncID, after last: KnowledgeID?, limit: Int
    ) async throws(DeviceRegistryError) -> [RegisteredDevice] {
        let reserved = sample.withLock { $0 }()
        pages.withLock { $0.append(reserved) }
        let first = last.flatMap { Int($0.text.dropFirst()) }.map { $0 + 1 } ?? 1000
        return (first..<min(first + limit, 1000 + count)).map {
            RegisteredDevice(
                KnowledgeID(unchecked: "k\($0)"), description: DeviceDescription(), firstSeen: 0, lastSeen: 0,
                lastUpload: nil, knowledge: [:])
        }
    }
}

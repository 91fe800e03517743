import DeviceRegistry
import FanOutLink
import Gateway
import HTTP
import JSONText
import SyncModel
import Synchronization
import Testing

/// What a gateway keeps for faces of a device, and which of their requests it answers without a task.
@Suite(.timeLimit(.minutes(5))) struct FacePositionTests {
    private func withPositions(
        isShared: Bool, _ test: (TestGateway, StoredPositions) async throws -> Void
    ) async throws {
        let stored = StoredPositions(isShared: isShared)
        try await withGateway {
            $0.faces = GatewayFaces([PositionFace()])
            $0.devices = GatewayDevices(
                registry: stored, isRevoked: { _ in false }, revoked: { _ in [] }, revoke: { _ in }, now: { 1 })
        } test: {
            try await test($0, stored)
        }
    }

    private func exchange(_ method: String, _ path: String, _ gateway: TestGateway) async throws -> String {
        let answer = try await gateway.exchange(
            method, path, headers: ["X-Device-Id: k1"], method == "POST" ? "{}" : nil)
        #expect(answer.status == 200)
        return answer.text
    }

    @Test(arguments: [false, true]) func whatOtherGatewaysStoreIsReadWhereTheyCan(isShared: Bool) async throws {
        try await withPositions(isShared: isShared) { (gateway, stored) async throws in
            stored.values.withLock { $0 = ["position/a": 3] }
            #expect(try await exchange("GET", "/position/fresh", gateway) == "3")
            stored.values.withLock { $0 = ["position/a": 5] }
            #expect(try await exchange("GET", "/position/known", gateway) == "3")
            #expect(try await exchange("GET", "/position/fresh", gateway) == (isShared ? "5" : "3"))
            #expect(stored.reads.withLock { $0 } == (isShared ? 2 : 1))
        }
    }

    @Test(arguments: [false, true]) func whatIsStoredCountsAfterARaiseToo(isShared: Bool) async throws {
        try await withPositions(isShared: isShared) { (gateway, stored) async throws in
            stored.values.withLock { $0 = ["position/a": 9] }
            // Raised in memory to less than what is stored, before that was read.
            #expect(try await exchange("POST", "/position/a", gateway) == "4")
            #expect(try await exchange("GET", "/position/known", gateway) == "9")
        }
    }

    @Test func aDrainedStreamIsKnownWithoutReading() async throws {
        try await withPositions(isShared: false) { (gateway, _) async throws in
            gateway.link.set(OwnerRows(head: TimeStamp(7)), of: .abc)
            #expect(try await exchange("GET", "/position/at-6", gateway) == "false")
            #expect(try await exchange("GET", "/position/at-7", gateway) == "true")
        }
    }

    /// As of one that a task makes.
    @Test(arguments: ["at-7", "at-x", "known"]) func anAnswerSaysWhatIsLeftOfTheRates(what: String) async throws {
        try await withGateway {
            $0.faces = GatewayFaces([PositionFace()])
            $0.configuration.deviceRates = Rates(requests: 100)
        } test: { gateway in
            let answer = try await gateway.exchange("GET", "/position/\(what)", headers: ["X-Device-Id: k1"])
            #expect(answer.status == (what == "at-x" ? 422 : 200))
            #expect(answer["ratelimit"]?.hasPrefix(#""device-requests";r=999;"#) == true)
        }
    }
}

/// Shows what its session knows.
private struct PositionFace: Face {
    let prefix = "position"
    let routes = [FaceRoute("/position/{what}", [.get, .post])]

    func problem(with schema: Schema) -> String? { nil }

    func respondAtOnce(to request: FaceRequest, _ session: any FaceSession) throws(Problem) -> HTTPResponse? {
        guard request.parameters[0].hasPrefix("at-") else { return nil }
        guard let at = Int64(request.parameters[0].dropFirst(3)) else { throw Problem(.invalidRequest, "no number") }
        return .json(200, Array("\(session.isDrained(at: TimeStamp(at)))".utf8))
    }

    func respond(to request: FaceRequest, _ session: any FaceSession) async throws -> HTTPResponse {
        if request.method == .post {
            try await session.raise(["a": 4], isDurable: false)
            return .json(200, Array("\(session.knownPosition("a") ?? 0)".utf8))
        }
        let positions = try await session.positions(isFresh: request.parameters[0] == "fresh")
        return .json(200, Array("\(positions["a"] ?? 0)".utf8))
    }
}

/// Positions that a test sets as another gateway would, and a count of how often they are read.
private final class StoredPositions: PartialRegistry {
    let isShared: Bool
    let values = Mutex<[String: Int64]>([:])
    let reads = Mutex(0)

    init(isShared: Bool) { self.isShared = isShared }

    func positions(of device: Device) async throws(DeviceRegistryError) -> [String: Int64] {
        reads.withLock { $0 += 1 }
        return values.withLock { $0 }
    }

    func raise(_ positions: [DevicePosition]) async throws(DeviceRegistryError) {
        values.withLock { values in
            for position in positions { values[position.name] = max(values[position.name] ?? .min, position.value) }
        }
    }
}

import FanOutLink
import Fuzzing
import NetworkLink
import Seeded
import SyncModel
import Testing

/// A pull from several fan-outs returns the page of one fan-out that serves all owners.
@Suite(.timeLimit(.minutes(5))) struct PullModelTests {
    @Test(arguments: [1, 2, 3] as [UInt64])
    func pageOfSeveralFanOutsEqualsPageOfOne(seed: UInt64) async throws {
        var random = SeededRandom(seed: seed)
        let whole = ScriptedFanOut()
        var served: [ServedFanOut] = []
        for ready in [[0, 1, 2, 3], [3, 4, 5], [5, 6, 7]] as [Set<Int>] {
            served.append(try await ServedFanOut(ready: ready))
        }
        let gateway = try await ConnectedGateway(to: served.map(\.address))
        await gateway.connected(3)
        let devices = ["a", "b", "c"].map { KnowledgeID(unchecked: $0) }
        let owners = (0..<12).map { SyncID(unchecked: "owner \($0) of \(seed)") }
        for owner in owners {
            let rows = (0..<Int.random(in: 0...8, using: &random)).map { number in
                ScriptedFanOut.Row(
                    device: devices.randomElement(using: &random)!, timeStamp: TimeStamp(Int64(10 * number + 10)),
                    json: Array(repeating: UInt8(ascii: "x"), count: Int.random(in: 1...40, using: &random)))
            }
            whole.append(rows, to: owner)
            for fanOut in served.map(\.fanOut) { fanOut.append(rows, to: owner) }
        }
        for _ in 0..<TestLength.count(200, long: 5000) {
            let some = owners.shuffled(using: &random).prefix(Int.random(in: 0...8, using: &random))
            let pulls = some.map { owner in
                var knowledge = OwnerKnowledge()
                if random.once(in: 3) { knowledge.floor = TimeStamp(Int64.random(in: 0...90, using: &random)) }
                for device in devices where random.once(in: 3) {
                    knowledge.entries[device] = TimeStamp(Int64.random(in: 0...90, using: &random))
                }
                var held: Set<TimeStamp> = []
                if random.once(in: 3) { held.insert(TimeStamp(10 * Int64.random(in: 1...8, using: &random))) }
                return OwnerPull(owner: owner, knowledge: knowledge, held: held)
            }
            let request = PagePull(
                owners: pulls, limit: Int.random(in: 1...20, using: &random),
                maximumBytes: Int.random(in: 1...200, using: &random))
            let pages = try await gateway.remote.pull(request, within: .zero)
            #expect(pages == whole.pages(request), "\(request)")
        }
        await gateway.remote.stop()
        for served in served { await served.server.stop() }
    }
}

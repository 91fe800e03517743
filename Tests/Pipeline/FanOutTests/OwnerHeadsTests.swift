import Seeded
import SyncModel
import Testing

@testable import FanOut

/// The heads of an owner whose rows many devices created.
@Suite struct OwnerHeadsTests {
    /// What they must be, by device.
    private struct Model {
        var heads: [KnowledgeID: (number: Int64, head: TimeStamp, indexedFrom: TimeStamp)] = [:]
        var order: [KnowledgeID] = []
    }

    private func expectEqual(
        _ heads: OwnerHeads, _ model: Model, _ comment: Comment, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(heads.devices.count == model.heads.count, comment, sourceLocation: sourceLocation)
        #expect(
            heads.devices.map(\.knowledgeID) == model.heads.keys.sorted { $0 < $1 }, comment,
            sourceLocation: sourceLocation)
        #expect(
            heads.devices.allSatisfy { device in
                model.heads[device.knowledgeID].map { $0 == (device.number, device.head, device.indexedFrom) } ?? false
            }, comment, sourceLocation: sourceLocation)
        #expect(heads.head == model.heads.values.map(\.head).max(), comment, sourceLocation: sourceLocation)
        #expect(
            heads.unindexed == model.order.prefix(OwnerHeads.unindexedDevices).sorted { $0 < $1 }, comment,
            sourceLocation: sourceLocation)
        let indexed = model.heads.values.filter { $0.indexedFrom > .zero }
        #expect(heads.indexedHead == indexed.map(\.head).max() ?? .zero, comment, sourceLocation: sourceLocation)
        #expect(heads.indexedFrom == indexed.map(\.indexedFrom).min() ?? .zero, comment, sourceLocation: sourceLocation)
    }

    /// In the order of their names, against it, and at random, which fills chunks differently.
    @Test(arguments: 0..<3) func eachDeviceHasItsHeadWhateverTheOrderInWhichTheyCome(order: Int) {
        var random = SeededRandom(seed: UInt64(order + 1))
        var (heads, model) = (OwnerHeads(number: 1), Model())
        var kept: [(OwnerHeads, Model)] = []
        for step in 0..<6000 {
            let index =
                switch order {
                case 0: step
                case 1: 6000 - step
                default: Int.random(in: 0..<4000, using: &random)
                }
            let name = String(index)
            let device = KnowledgeID("k" + String(repeating: "0", count: 5 - name.utf8.count) + name)!
            let timeStamp = TimeStamp(Int64(step + 1))
            let number = model.heads[device]?.number ?? Int64(model.heads.count)
            let moved = heads.move(device, number: number, to: timeStamp)
            if model.heads[device] == nil {
                let isIndexed = model.order.count >= OwnerHeads.unindexedDevices
                model.order.append(device)
                model.heads[device] = (number, timeStamp, isIndexed ? timeStamp : .zero)
            } else {
                model.heads[device]?.head = timeStamp
            }
            #expect(heads[device] == moved && moved.head == timeStamp && moved.number == number)
            // As a transaction does that is not committed: what was copied stays as it was.
            if step % 1500 == 700 { kept.append((heads, model)) }
        }
        expectEqual(heads, model, "at the end")
        for (heads, model) in kept { expectEqual(heads, model, "\(model.heads.count) devices") }
        #expect(heads["absent"] == nil && heads["zz"] == nil)
        // As a file is opened.
        let read = OwnerHeads(number: 1, head: heads.head, devices: heads.devices.shuffled(using: &random))
        #expect(read == heads)
        expectEqual(read, model, "read")
    }
}

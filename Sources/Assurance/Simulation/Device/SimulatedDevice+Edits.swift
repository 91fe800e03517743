import DeviceModel
import SyncModel

/// The batches of a device.
extension SimulatedDevice {
    /// Makes a batch of random edits.
    func edit() {
        let owners = [caller] + links.map(\.owner) + (random.once(in: 20) ? world.scenario.owners : [])
        let count = random.pick([0, 1, 1, 1, 2, 2, 4, 9])
        let now = world.logTime
        var edits = (0..<count).map { _ in
            let owner = random.once(in: 2) ? caller : random.pick(owners)
            return Edit(
                random, writable, rowCount: world.scenario.rowCount, owner: owner,
                seen: { [memory] in memory.copy.seen(owner, $0, $1) }, now: now)
        }
        if world.scenario.hasChangeIDs { nameChanges(&edits, owners) }
        let number: Int64? = random.once(in: 8) && count > 0 ? nil : memory.nextNumber
        if number != nil { memory.nextNumber += random.once(in: 8) ? Int64(random.number(2...20)) : 1 }
        begin(edits, number: number, isAtomic: random.once(in: 4))
    }

    /// Gives some changes an id, and adds changes that were sent before, some with other content or for another owner.
    private func nameChanges(_ edits: inout [Edit], _ owners: [SyncID]) {
        let random = random.branch()
        for index in edits.indices where random.once(in: 2) {
            edits[index].changeID = "c\(memory.nextChangeID)"
            memory.nextChangeID += 1
        }
        let named = edits.filter { $0.changeID != nil }
        // Not more than the bucket of a caller's rate holds.
        while (1..<10).contains(edits.count), random.once(in: 2),
            let old = (memory.named + named).last(random.number(1...4))
        {
            var edit = old
            switch random.number(0...5) {
            case 0: edit = old.changed(random, schema)
            case 1: edit = old.moved(to: random.pick(owners))
            default: break
            }
            edits.insert(edit, at: random.number(0...edits.count))
        }
        memory.named = (memory.named + named).suffix(6)
    }

    private func begin(_ edits: [Edit], number: Int64?, isAtomic: Bool) {
        let json = "[\(edits.map { $0.json(schema) }.joined(separator: ","))]"
        if let number { sentNumbers.insert(number) }
        memory.batch = Batch(number: number, isAtomic: isAtomic, edits: edits, json: json)
        memory.lastNumber = nil
        world.audit.admission.record(edits, json: json)
        world.record("\(name): batch \(number.map(String.init) ?? "-") \(json)")
    }

    /// Sends the changes for which a batch was too large in another one.
    ///
    /// An atomic batch would be as large again: its edits are dropped.
    func sendAgain(_ edits: [Edit], of batch: Batch) {
        guard !edits.isEmpty, !batch.isAtomic else { return }
        let number = memory.nextNumber
        memory.nextNumber += 1
        begin(edits, number: number, isAtomic: false)
    }
}

extension Array {
    /// The element so many before the end, from 1; the first where there are fewer.
    fileprivate func last(_ number: Int) -> Element? { isEmpty ? nil : self[Swift.max(0, count - number)] }
}

import DeviceModel
import HTTP
import SyncModel

/// Requests with a vector or an epoch of another history, and requests that exceed a limit. They change nothing that the
/// device has.
extension SimulatedDevice {
    /// - Parameter mustAnswer: without faults each probe is answered.
    func probe(mustAnswer: Bool = false) async {
        switch random.number(0...4) {
        case 0: await pullFromAhead(mustAnswer: mustAnswer)
        case 1: await pullOtherEpoch(mustAnswer: mustAnswer)
        case 2: await uploadToOtherEpoch()
        case 3: await random.once(in: 2) ? reuseNumber() : useSkippedNumber()
        default: await exceedLimit()
        }
    }

    /// Above the end of every log.
    private static let beyond: Int64 = 1 << 52

    /// A vector above the end of the log: its owner must resync, and no other.
    private func pullFromAhead(mustAnswer: Bool) async {
        let owner = random.pick([caller] + links.map(\.owner))
        let entries = [
            #""knowledge":[{"syncId":"\#(owner)","knowledgeId":"\#(name)","lastTimeStamp":\#(Self.beyond)}]"#,
            #""knowledge":[{"syncId":"\#(owner)","knowledgeId":"*","lastTimeStamp":\#(Self.beyond)}]"#,
            #""knowledge":[],"cutFrom":[{"syncId":"\#(owner)","head":\#(Self.beyond)}]"#,
        ]
        let request = body(nil, random.pick(entries) + #","limit":1000"#)
        await expectResync([owner], request, mustAnswer: mustAnswer)
    }

    /// The epoch of another history: all owners of the vector must resync.
    private func pullOtherEpoch(mustAnswer: Bool) async {
        let request = body(
            nil, memory.copy.requestFields + #","epoch":"\#(String(repeating: "f", count: 32))","limit":1000"#,
            ofHistory: false)
        await expectResync(granted.intersection(memory.copy.named), request, mustAnswer: mustAnswer)
    }

    private func expectResync(_ owners: Set<SyncID>, _ request: String, mustAnswer: Bool) async {
        guard let response = await post("/v1/pull", request, mayTimeOut: !mustAnswer), response.status == 200,
            let answer = read(response)
        else {
            if mustAnswer { world.fail(.progress, "\(name): a pull of another history is not answered") }
            return
        }
        let named = owners.map(\.text)
        if Set(answer.resync) != Set(named) || answer.resync.count != named.count {
            return world.fail(.drainedEqual, "\(name) must resync \(named.sorted()), not \(answer.resync.sorted())")
        }
        for owner in named
        where answer.rows.contains(where: { $0.owner == owner })
            || answer.knowledge.contains(where: { $0.owner == owner })
        {
            return world.fail(.drainedEqual, "\(name) must resync \(owner), and is sent rows or entries of it")
        }
        let granted = granted
        for row in answer.rows where !granted.contains(SyncID(unchecked: row.owner)) {
            return world.fail(.ownersApart, "\(name) was sent a row of \(row.owner)")
        }
    }

    /// A batch of another history: it is refused and not appended.
    private func uploadToOtherEpoch() async {
        let edit = Edit(newRow: "other\(random.number(1...1_000_000))", of: caller, writable, random)
        let changes = "[\(edit.json(schema))]"
        let batch = memory.nextNumber
        let request =
            #"{"knowledgeId":"\#(name)","epoch":"\#(String(repeating: "f", count: 32))","batch":\#(batch),"changes":\#(changes)}"#
        guard let response = await post("/v1/sync", request) else { return }
        if response.status == 200, let answer = read(response), answer.refusal != "history_changed" {
            return world.fail(.appliedOnce, "\(name): a batch of another history is \(answer.refusal ?? "not refused")")
        }
        requireNotAppended(changes, batch: batch, "a batch of another history")
    }

    /// The number of a batch with other content: it is refused, and applies nothing.
    private func reuseNumber() async {
        guard let batch = done, memory.batch == nil, let number = batch.number, let first = batch.edits.first else {
            return
        }
        var edits = batch.edits
        let isAtomic = batch.isAtomic != random.once(in: 3)
        if isAtomic == batch.isAtomic { edits[0] = first.changed(random, schema) }
        let other = Batch(
            number: number, isAtomic: isAtomic, edits: edits,
            json: "[\(edits.map { $0.json(schema) }.joined(separator: ","))]")
        world.audit.admission.record(edits, json: other.json)
        world.record("\(name): batch \(number) again, with other content \(other.json)")
        let response = await post(
            "/v1/upload", body(other, nil), headers: [("Prefer", "wait=10")], changes: edits.count)
        guard let response, response.status == 200, let answer = read(response) else { return }
        if answer.refusal != "batch_mismatch", answer.refusal != "outcome_expired" {
            world.fail(.appliedOnce, "\(name): batch \(number) is used again and not refused")
        }
    }

    /// A number that was skipped, below the newest: it is refused, and applies nothing.
    private func useSkippedNumber() async {
        guard let newest = done?.number, memory.batch == nil else { return }
        guard let number = (1..<newest).last(where: { !sentNumbers.contains($0) }) else { return }
        let edit = Edit(newRow: "skipped\(number)", of: caller, writable, random)
        let batch = Batch(number: number, isAtomic: false, edits: [edit], json: "[\(edit.json(schema))]")
        world.audit.admission.record([edit], json: batch.json)
        let response = await post("/v1/upload", body(batch, nil), headers: [("Prefer", "wait=10")], changes: 1)
        guard let response, response.status == 200, let answer = read(response) else { return }
        if answer.refusal != "outcome_expired" {
            world.fail(.appliedOnce, "\(name): batch \(number), below \(newest), is not refused")
        }
    }

    /// A request of just the largest size, and one that exceeds it.
    private func exceedLimit() async {
        let isTooLarge = random.once(in: 2)
        let edit = Edit(newRow: "large\(random.number(1...1_000_000))", of: caller, writable, random)
        let changes = "[\(edit.json(schema))]"
        let batch = memory.nextNumber
        let fields = isTooLarge ? #""batch":\#(batch),"changes":\#(changes),"# : #""limit":1,"#
        let start = #"{"knowledgeId":"\#(name)",\#(fields)"pad":""#
        let size = world.scenario.maxBatchBytes + (isTooLarge ? 1 : 0)
        let request = start + String(repeating: "x", count: size - start.utf8.count - 2) + "\"}"
        guard let response = await post(isTooLarge ? "/v1/upload" : "/v1/pull", request) else { return }
        if (response.status == 413) != isTooLarge, ![429, 503].contains(response.status) {
            return world.fail(.limits, "\(name): \(size) bytes are answered with \(response.status)")
        }
        if isTooLarge { requireNotAppended(changes, batch: batch, "a request that is too large") }
    }

    private func requireNotAppended(_ changes: String, batch: Int64, _ what: String) {
        world.audit.catchUp()
        let partition = Partitioning(count: world.scenario.partitions).partition(of: caller)
        if world.audit.holds(Array(changes.utf8), batch: batch, of: device, partition) {
            world.fail(.limits, "\(name): \(what) was appended")
        }
    }
}

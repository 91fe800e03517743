import DeviceModel
import HTTP
import SyncModel

/// A device: edits, uploads, repeats, pulls, and goes back to a backup at times.
final class SimulatedDevice: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.

    /// A batch that is sent until its outcome is known.
    private struct Batch {
        let number: Int64?
        let isAtomic: Bool
        let edits: [Edit]
        let json: String
    }

    /// What a backup restores.
    private struct Memory {
        var copy = DeviceCopy()
        var batch: Batch?
        var nextNumber: Int64 = 1
        /// Linked owners, with `read` or `write`.
        var links: [(owner: SyncID, access: String)] = []
    }

    let name: String
    private let caller: SyncID
    private let device: Device
    private let world: World
    private var memory = Memory()
    private var backup = Memory()
    private var wasRestored = false
    /// The outcomes of its batches, by number and content.
    private var outcomes: [String: [String]] = [:]

    private var random: SeededGenerator { world.random }
    private var schema: Schema { world.scenario.schema }

    init(_ name: String, of caller: SyncID, _ world: World) {
        self.name = name
        self.caller = caller
        self.world = world
        device = Device(caller: caller, knowledgeID: KnowledgeID(unchecked: name))
        chooseLinks()
        backup = memory
    }

    private var links: [(owner: SyncID, access: String)] { memory.links }

    private func chooseLinks() {
        memory.links = world.scenario.owners.filter { $0 != caller && random.once(in: 2) }.map {
            ($0, random.once(in: 3) ? "read" : "write")
        }
    }

    // MARK: Actions

    func act() async {
        await world.pause(upTo: random.pick([.milliseconds(1), .milliseconds(100), .seconds(3)]))
        if memory.batch == nil, !random.once(in: 3) { edit() }
        switch random.number(0...19) {
        case 0...8: await sync()
        case 9...11: await upload()
        case 12...13: await lookUp()
        case 14...17: await pull()
        case 18:
            if random.once(in: 2) { backup = memory } else { restore() }
        default:
            // The links of a pending batch stay: with others its repeats would differ.
            if memory.batch == nil { chooseLinks() }
        }
    }

    /// Uploads its batch and pulls to the end; `false` where a request fails.
    func drain() async -> Bool {
        guard await sync(limit: 100, mayTimeOut: false), memory.batch == nil else { return false }
        return await pull(limit: 3, isCompact: random.once(in: 4), mayTimeOut: false)
    }

    private func restore() {
        world.record("\(name): restores a backup")
        memory = backup
        wasRestored = true
    }

    private func edit() {
        let owners = [caller] + links.map(\.owner) + (random.once(in: 20) ? world.scenario.owners : [])
        let count = random.pick([0, 1, 1, 2, 4])
        let now = world.logTime
        let edits = (0..<count).map { _ in
            let owner = random.once(in: 2) ? caller : random.pick(owners)
            return Edit(
                random, world.scenario.schema, rowCount: world.scenario.rowCount, owner: owner,
                seen: { [memory] in memory.copy.seen(owner, $0, $1) }, now: now)
        }
        let json = "[\(edits.map { $0.json(schema) }.joined(separator: ","))]"
        let number: Int64? = random.once(in: 15) && count > 0 ? nil : memory.nextNumber
        if number != nil { memory.nextNumber += random.once(in: 15) ? Int64(random.number(2...20)) : 1 }
        memory.batch = Batch(number: number, isAtomic: random.once(in: 4), edits: edits, json: json)
        world.record("\(name): batch \(number.map(String.init) ?? "-") \(json)")
    }

    // MARK: Requests

    @discardableResult
    private func sync(limit: Int? = nil, mayTimeOut: Bool = true) async -> Bool {
        let batch = memory.batch
        let limit = limit ?? random.pick([world.scenario.pageLimit, 1000])
        let isCompact = random.once(in: 10)
        let body = body(batch, #"\#(memory.copy.requestFields),"limit":\#(limit),"compact":\#(isCompact)"#)
        guard let response = await post("/v1/sync", body, mayTimeOut: mayTimeOut) else {
            forgetUnnumbered(batch)
            return false
        }
        acknowledge(response, batch)
        guard response.status == 200, let answer = read(response) else {
            forgetUnnumbered(batch)
            return false
        }
        take(answer, of: batch)
        takePull(answer, isCompact: isCompact)
        return !answer.hasMore
    }

    private func upload() async {
        guard let batch = memory.batch else { return }
        let waits = random.once(in: 2)
        let response = await post("/v1/upload", body(batch, nil), headers: waits ? [("Prefer", "wait=10")] : [])
        forgetUnnumbered(batch)
        guard let response else { return }
        acknowledge(response, batch)
        if response.status == 200, let answer = read(response) { take(answer, of: batch) }
    }

    /// Asks for the outcome of the batch.
    private func lookUp() async {
        guard let batch = memory.batch, let number = batch.number else { return }
        let query = [("knowledgeId", name)]
        guard let response = await send(.get, "/v1/batches/\(number)", query: query), response.status == 200,
            let answer = read(response)
        else { return }
        // After a restore it may be the outcome of another batch with that number.
        if !wasRestored || outcomes[key(batch)] != nil { take(answer, of: batch) }
    }

    @discardableResult
    private func pull(limit: Int? = nil, isCompact: Bool? = nil, mayTimeOut: Bool = true) async -> Bool {
        let isCompact = isCompact ?? random.once(in: 6)
        let wait = mayTimeOut && random.once(in: 3) ? random.number(1...20) : 0
        let limit = limit ?? random.pick([world.scenario.pageLimit, 1000])
        while true {
            let fields =
                #"\#(memory.copy.requestFields),"limit":\#(limit),"compact":\#(isCompact),"wait":\#(wait)"#
            guard let response = await post("/v1/pull", body(nil, fields), mayTimeOut: mayTimeOut),
                response.status == 200,
                let answer = read(response)
            else { return false }
            takePull(answer, isCompact: isCompact)
            if !answer.hasMore { return true }
            if mayTimeOut, random.once(in: 8) { return false }
        }
    }

    /// A batch without a number is sent once: repeats would be applied again.
    private func forgetUnnumbered(_ batch: Batch?) {
        if let batch, batch.number == nil { memory.batch = nil }
    }

    private func body(_ batch: Batch?, _ fields: String?) -> String {
        var parts = [#""knowledgeId":"\#(name)""#]
        if let batch {
            if let number = batch.number { parts.append(#""batch":\#(number)"#) }
            if batch.isAtomic { parts.append(#""atomic":true"#) }
            parts.append(#""changes":\#(batch.json)"#)
        }
        if let fields { parts.append(fields) }
        return "{\(parts.joined(separator: ","))}"
    }

    private func post(
        _ path: String, _ body: String, headers: [(String, String)] = [], mayTimeOut: Bool = true
    ) async -> HTTPResponse? {
        await send(.post, path, headers: headers, body: Array(body.utf8), mayTimeOut: mayTimeOut)
    }

    private func send(
        _ method: HTTPMethod, _ path: String, query: [(String, String)] = [], headers: [(String, String)] = [],
        body: [UInt8] = [], mayTimeOut: Bool = true
    ) async -> HTTPResponse? {
        var headers = headers + [("X-Sync-Id", caller.text)]
        if !links.isEmpty {
            headers.append(("X-Sync-Links", links.map { "\($0.owner):\($0.access)" }.joined(separator: ",")))
        }
        await world.delay(nil)
        guard let request = HTTPRequest(direct: method, path, query: query, headers: headers, body: body),
            let (process, gateway) = world.anyGateway()
        else { return nil }
        let timeout: Duration? = mayTimeOut && random.once(in: 12) ? random.delay(upTo: .seconds(15)) : nil
        let response = await gateway.answer(request, timeout: timeout)
        world.record("\(name): \(path) at \(process.name): \(response.map { "\($0.status)" } ?? "no answer")")
        await world.delay(nil)
        return response
    }

    private func read(_ response: HTTPResponse) -> Answer? {
        guard case .bytes(let bytes) = response.content else { return nil }
        do {
            return try Answer(bytes)
        } catch {
            world.fail(.progress, "an answer is not JSON: \(String(decoding: bytes, as: UTF8.self))")
            return nil
        }
    }

    // MARK: Answers

    /// Checks that an acknowledged batch is in the log.
    private func acknowledge(_ response: HTTPResponse, _ batch: Batch?) {
        guard let batch, [200, 202, 504].contains(response.status) else { return }
        world.audit.catchUp()
        let partition = Partitioning(count: world.scenario.partitions).partition(of: caller)
        guard batch.number != nil || !batch.edits.isEmpty else { return }
        if !world.audit.holds(Array(batch.json.utf8), batch: batch.number, of: device, partition) {
            world.fail(.nothingLost, "\(name) got \(response.status), and the log does not have its batch")
        }
    }

    private func key(_ batch: Batch) -> String { "\(batch.number ?? 0) \(batch.isAtomic) \(batch.json)" }

    private func take(_ answer: Answer, of batch: Batch?) {
        guard let batch, answer.hasBatch else { return }
        if let refusal = answer.refusal {
            world.record("\(name): batch \(batch.number ?? 0) is refused: \(refusal)")
            guard let number = batch.number, memory.batch?.number == number else { return }
            if outcomes[key(batch)] != nil, refusal != "outcome_expired" {
                world.fail(.appliedOnce, "\(name): batch \(number) had an outcome, now it is refused: \(refusal)")
            }
            // The number was used before the restore: the same edits are sent with another one.
            let next = max(memory.nextNumber, number + 1) + (refusal == "outcome_expired" ? 10 : 0)
            memory.nextNumber = next + 1
            memory.batch = Batch(number: next, isAtomic: batch.isAtomic, edits: batch.edits, json: batch.json)
            return
        }
        guard answer.results.count == batch.edits.count else {
            return world.fail(
                .progress, "\(name): \(batch.edits.count) changes have \(answer.results.count) results")
        }
        let outcome = answer.results.map { "\($0.status) \($0.code) \($0.timeStamp) \($0.version)" }
        if batch.number != nil {
            if let first = outcomes[key(batch)], first != outcome {
                world.fail(.appliedOnce, "\(name): batch \(batch.number ?? 0) was \(first), now it is \(outcome)")
            }
            outcomes[key(batch)] = outcome
        }
        for (result, edit) in zip(answer.results, batch.edits) {
            memory.copy.apply(result, of: edit, by: name, schema)
        }
        if let pending = memory.batch, key(pending) == key(batch) { memory.batch = nil }
    }

    private func takePull(_ answer: Answer, isCompact: Bool) {
        world.audit.catchUp()
        let granted = Set([caller] + links.map(\.owner))
        for row in answer.rows where !granted.contains(SyncID(unchecked: row.owner)) {
            return world.fail(.ownersApart, "\(name) was sent a row of \(row.owner)")
        }
        for owner in answer.revoked { memory.copy.drop(SyncID(unchecked: owner)) }
        let sent = memory.copy.vector
        for row in answer.rows { memory.copy.apply(row, schema) }
        memory.copy.applyVector(of: answer)
        checkVector(sent, memory.copy.vector)
        guard !answer.hasMore, world.violation == nil else { return }
        for owner in granted.sorted() where !answer.resync.contains(owner.text) {
            guard let head = TimeStamp(rawValue: memory.copy.head(of: owner)) else { continue }
            let rows = world.streams.rows(of: owner, at: head)
            if let difference = memory.copy.difference(from: owner, rows, schema) {
                world.fail(.drainedEqual, "\(name), drained, differs from \(owner) at \(head): \(difference)")
            }
        }
        if !answer.resync.isEmpty { world.fail(.drainedEqual, "\(name) must resync, though the epoch is the same") }
    }

    /// The vector never falls: what the device has stays covered.
    private func checkVector(_ before: [SyncID: [String: Int64]], _ after: [SyncID: [String: Int64]]) {
        for (owner, entries) in before {
            let floor = after[owner]?["*"] ?? 0
            for (device, timeStamp) in entries where (after[owner]?[device] ?? floor) < timeStamp {
                world.fail(.drainedEqual, "\(name): the entry of \(owner), \(device) falls from \(timeStamp)")
            }
        }
    }

    /// Checks that the device has pulled up to the newest rows.
    func checkEnd() {
        for owner in [caller] + links.map(\.owner) {
            let head = world.streams.head(of: owner)
            if memory.copy.head(of: owner) != head.rawValue {
                world.fail(
                    .drainedEqual, "\(name), drained, is at \(memory.copy.head(of: owner)) of \(owner), not \(head)")
            }
        }
    }
}

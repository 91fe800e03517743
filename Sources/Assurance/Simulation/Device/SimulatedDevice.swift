import DeviceModel
import HTTP
import SyncModel

/// A device: edits, uploads, repeats, pulls, and goes back to a backup at times.
final class SimulatedDevice: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.

    /// A batch that is sent until its outcome is known.
    struct Batch {
        let number: Int64?
        let isAtomic: Bool
        let edits: [Edit]
        let json: String
    }

    /// What a backup restores.
    struct Memory {
        var copy = DeviceCopy()
        var batch: Batch?
        var nextNumber: Int64 = 1
        /// The number of its newest batch, once the log has it.
        var lastNumber: Int64?
        /// Its newest changes with an id, applied or not.
        var named: [Edit] = []
        /// Counts the ids; devices have the same ones.
        var nextChangeID = 1
        /// As the server last gave it; `nil` for a device that names none.
        var schemaVersion: String?
        /// Linked owners, with `read` or `write`.
        var links: [(owner: SyncID, access: String)] = []
    }

    let name: String
    let caller: SyncID
    let device: Device
    let world: World
    var memory = Memory()
    private var backup = Memory()
    private var wasRestored = false
    private var token: SimulatedIssuer.Token?
    /// Whether its tokens are for it alone.
    private let hasOwnToken: Bool
    /// Whether its requests name the schema version that the server last gave.
    let namesVersion: Bool
    /// The schema version whose columns its app has.
    private(set) var app = 1
    /// When the time of its long poll is over; `nil` while it has none.
    var pollEnd: Duration?
    /// The outcomes of its batches, by number and content.
    private var outcomes: [String: [String]] = [:]
    /// The newest numbered batch with an outcome.
    private(set) var done: Batch?
    /// The numbers of all its batches.
    var sentNumbers: Set<Int64> = []

    var random: SeededGenerator { world.random }
    var schema: Schema { world.scenario.schema }

    init(_ name: String, of caller: SyncID, _ world: World) {
        self.name = name
        self.caller = caller
        self.world = world
        device = Device(caller: caller, knowledgeID: KnowledgeID(unchecked: name))
        hasOwnToken = world.random.once(in: 2)
        namesVersion = !world.random.branch().once(in: 4)
        chooseLinks()
        backup = memory
    }

    var links: [(owner: SyncID, access: String)] { memory.links }

    /// The owners whose rows it may read.
    var granted: Set<SyncID> { Set([caller] + links.map(\.owner)) }

    private func chooseLinks() {
        memory.links = world.scenario.owners.filter { $0 != caller && random.once(in: 2) }.map {
            ($0, random.once(in: 3) ? "read" : "write")
        }
    }

    // MARK: Actions

    func act() async {
        await world.pause(upTo: random.pick([.milliseconds(1), .milliseconds(100), .seconds(3)]))
        if app < world.scenario.versions.count, random.once(in: 2) { app += 1 }
        if memory.batch == nil, !random.once(in: 3) { edit() }
        switch random.number(0...20) {
        case 0...8: await sync()
        case 9...11: await upload()
        case 12...13: await lookUp()
        case 14...17: await pull()
        case 18: await probe()
        case 19:
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

    // MARK: Requests

    @discardableResult
    private func sync(limit: Int? = nil, mayTimeOut: Bool = true) async -> Bool {
        let batch = memory.batch
        let limit = limit ?? random.pick([world.scenario.pageLimit, 1000])
        let isCompact = random.once(in: 10)
        let body = body(batch, #"\#(memory.copy.requestFields),"limit":\#(limit),"compact":\#(isCompact)"#)
        guard let response = await post("/v1/sync", body, changes: batch?.edits.count ?? 0, mayTimeOut: mayTimeOut)
        else {
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
        checkCovers(batch.flatMap { answer.results.isEmpty ? nil : $0.number }, answer)
        await readRows(answer, of: batch)
        return !answer.hasMore
    }

    private func upload() async {
        guard let batch = memory.batch else { return }
        let waits = random.once(in: 2)
        let headers = waits ? [("Prefer", "wait=10")] : []
        let response = await post("/v1/upload", body(batch, nil), headers: headers, changes: batch.edits.count)
        forgetUnnumbered(batch)
        guard let response else { return }
        acknowledge(response, batch)
        guard response.status == 200, let answer = read(response) else { return }
        take(answer, of: batch)
        await readRows(answer, of: batch)
    }

    /// Asks for the outcome of the batch.
    private func lookUp() async {
        guard let batch = memory.batch, let number = batch.number else { return await lookUpDone() }
        let query = [("knowledgeId", name)]
        guard let response = await send(.get, "/v1/batches/\(number)", query: query), response.status == 200,
            let answer = read(response)
        else { return }
        // After a restore it may be the outcome of another batch with that number.
        guard !wasRestored || outcomes[key(batch)] != nil else { return }
        take(answer, of: batch)
        await readRows(answer, of: batch)
    }

    @discardableResult
    private func pull(limit: Int? = nil, isCompact: Bool? = nil, mayTimeOut: Bool = true) async -> Bool {
        let isCompact = isCompact ?? random.once(in: 6)
        let wait = mayTimeOut && random.once(in: 3) ? random.number(1...20) : 0
        let limit = limit ?? random.pick([world.scenario.pageLimit, 1000])
        // Only an outcome that is its own: after a restore there may be one of another batch with that number.
        let included = wasRestored || !random.once(in: 3) ? nil : memory.lastNumber
        while true {
            var fields =
                #"\#(memory.copy.requestFields),"limit":\#(limit),"compact":\#(isCompact),"wait":\#(wait)"#
            if let included { fields += #","include":[\#(included)]"# }
            let vector = memory.copy.vector
            let start = world.scheduler.now
            guard let response = await post("/v1/pull", body(nil, fields), mayTimeOut: mayTimeOut),
                response.status == 200,
                let answer = read(response)
            else { return false }
            if wait > 0, world.scheduler.now < start + .seconds(wait) { checkHasNews(answer, since: vector) }
            takePull(answer, isCompact: isCompact)
            checkCovers(included, answer)
            if !answer.hasMore { return true }
            if mayTimeOut, random.once(in: 8) { return false }
        }
    }

    /// A batch without a number is sent once: repeats would be applied again.
    private func forgetUnnumbered(_ batch: Batch?) {
        if let batch, batch.number == nil { memory.batch = nil }
    }

    /// - Parameter ofHistory: whether the request names the history and its schema version.
    func body(_ batch: Batch?, _ fields: String?, ofHistory: Bool = true) -> String {
        var parts = [#""knowledgeId":"\#(name)""#]
        if ofHistory, let version = memory.schemaVersion {
            parts.append(#""epoch":"\#(world.scenario.history.epoch)","schemaVersion":"\#(version)""#)
        }
        if let batch {
            if let number = batch.number { parts.append(#""batch":\#(number)"#) }
            if batch.isAtomic { parts.append(#""atomic":true"#) }
            parts.append(#""changes":\#(batch.json)"#)
        }
        if let fields { parts.append(fields) }
        return "{\(parts.joined(separator: ","))}"
    }

    func post(
        _ path: String, _ body: String, headers: [(String, String)] = [], changes: Int = 0, mayTimeOut: Bool = true
    ) async -> HTTPResponse? {
        await send(.post, path, headers: headers, body: Array(body.utf8), changes: changes, mayTimeOut: mayTimeOut)
    }

    func send(
        _ method: HTTPMethod, _ path: String, query: [(String, String)] = [], headers: [(String, String)] = [],
        body: [UInt8] = [], changes: Int = 0, mayTimeOut: Bool = true
    ) async -> HTTPResponse? {
        await world.delay(nil)
        token = world.issuer.token(
            token, for: caller, device: hasOwnToken ? name : nil, links: links, at: world.scheduler.now)
        let headers = headers + [("Authorization", "Bearer \(token?.text ?? "")")]
        guard let request = HTTPRequest(direct: method, path, query: query, headers: headers, body: body),
            let (process, gateway) = world.anyGateway()
        else { return nil }
        let timeout: Duration? = mayTimeOut && random.once(in: 12) ? random.delay(upTo: .seconds(15)) : nil
        let response = await gateway.answer(request, timeout: timeout)
        // Without the folder's name, which differs between runs.
        let summary = response?.summary.replacing(world.folder.path, with: "") ?? "no answer"
        world.record("\(name): \(path) at \(process.name): \(summary)")
        if let response {
            checkStatus(response, path)
            if [200, 202, 504].contains(response.status) { gateway.accepted(changes, of: caller) }
        }
        await world.delay(nil)
        return response
    }

    func read(_ response: HTTPResponse) -> Answer? {
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
        if let number = batch.number, memory.batch?.number == number { memory.lastNumber = number }
    }

    private func key(_ batch: Batch) -> String { "\(batch.number ?? 0) \(batch.isAtomic) \(batch.json)" }

    func take(_ answer: Answer, of batch: Batch?) {
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
            sentNumbers.insert(next)
            return
        }
        guard answer.results.count == batch.edits.count else {
            return world.fail(
                .progress, "\(name): \(batch.edits.count) changes have \(answer.results.count) results")
        }
        let outcome = Self.outcome(answer.results)
        if batch.number != nil {
            if let first = outcomes[key(batch)], first != outcome {
                world.fail(.appliedOnce, "\(name): batch \(batch.number ?? 0) was \(first), now it is \(outcome)")
            }
            outcomes[key(batch)] = outcome
        }
        checkAtomic(answer.results, batch)
        for (result, edit) in zip(answer.results, batch.edits) {
            memory.copy.apply(result, of: edit, by: name, schema)
        }
        if let pending = memory.batch, key(pending) == key(batch) {
            memory.batch = nil
            sendAgain(
                zip(answer.results, batch.edits).filter { $0.0.code == "batch_rows_too_large" }.map(\.1), of: batch)
        }
        if batch.number != nil { done = batch }
    }

    /// Asks again for the outcome of the newest batch that has one, whatever owners are granted by now.
    private func lookUpDone() async {
        guard let batch = done, let number = batch.number, let outcome = outcomes[key(batch)] else { return }
        let query = [("knowledgeId", name)]
        guard let response = await send(.get, "/v1/batches/\(number)", query: query), response.status == 200,
            let answer = read(response)
        else { return }
        // The newest upload with that number may have had other content.
        if answer.refusal != nil { return }
        if Self.outcome(answer.results) != outcome {
            world.fail(
                .appliedOnce, "\(name): batch \(number) was \(outcome), now it is \(Self.outcome(answer.results))")
        }
        await readRows(answer, of: batch)
    }

    /// Asks for that outcome without any grant of others, and later with all again.
    func lookUpWithoutLinks() async {
        let links = memory.links
        memory.links = []
        await lookUpDone()
        memory.links = links
        await lookUpDone()
    }

    private static func outcome(_ results: [Answer.Result]) -> [String] {
        results.map { "\($0.status) \($0.code) \($0.timeStamp) \($0.version)" }
    }

    func takePull(_ answer: Answer, isCompact: Bool) {
        world.audit.catchUp()
        let granted = granted
        for row in answer.rows where !granted.contains(SyncID(unchecked: row.owner)) {
            return world.fail(.ownersApart, "\(name) was sent a row of \(row.owner)")
        }
        let revoked = memory.copy.named.subtracting(granted)
        if Set(answer.revoked) != Set(revoked.map(\.text)) {
            world.fail(.ownersApart, "\(name) is told that \(answer.revoked) are revoked, not \(revoked.sorted())")
        }
        for owner in answer.revoked { memory.copy.drop(SyncID(unchecked: owner)) }
        takeVersion(of: answer)
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

extension HTTPResponse {
    /// The status, and what is wrong.
    fileprivate var summary: String {
        guard status >= 400, case .bytes(let bytes) = content else { return "\(status)" }
        return "\(status) \(String(decoding: bytes, as: UTF8.self))"
    }
}

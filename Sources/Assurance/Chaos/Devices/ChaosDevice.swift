import DeviceModel
import Glibc
import LoadTools
import SyncModel

/// A device that writes random batches through any gateway, repeats what was not answered, and pulls.
final class ChaosDevice: @unchecked Sendable {
    // Unchecked: used by one thread at a time.

    /// A batch that is sent until its outcome is known.
    private struct Pending {
        let number: Int64
        let isAtomic: Bool
        let edits: [Edit]
        let json: String
        let began: Int64
        var isAcknowledged = false
    }

    let owner: SyncID
    let name: String
    let links: [(owner: SyncID, access: String)]
    private(set) var copy = DeviceCopy()
    private(set) var book: BatchBook
    private let run: RunState
    private let client: GatewayClient
    private let random: SeededGenerator
    private let plan: DevicePlan
    private var pages: PageJudge
    private var pending: Pending?
    /// A batch with an outcome, to be repeated.
    private var earlier: Pending?
    private var next: Int64 = 1
    /// Vectors of drained answers that had to cover a batch whose results are not known yet.
    private var drained: [Int64: [PageJudge.Vector]] = [:]
    private var failures = 0
    /// `nil`: it is never revoked.
    private let revocation: Revocation?

    init(
        _ name: String, of owner: SyncID, links: [(owner: SyncID, access: String)], seed: UInt64, _ plan: DevicePlan,
        _ run: RunState, revocation: Revocation? = nil
    ) {
        self.revocation = revocation
        self.owner = owner
        self.name = name
        self.links = links
        self.plan = plan
        self.run = run
        random = SeededGenerator(seed: seed)
        book = BatchBook(owner: owner.text, device: name)
        book.isRevoked = revocation != nil
        pages = PageJudge("\(owner)/\(name)", granted: [owner] + links.map(\.owner))
        let isForDevice = seed.isMultiple(of: 2)
        client = GatewayClient(plan.gateways) { [tokens = plan.tokens] in
            try tokens.token(owner, device: isForDevice ? name : nil, links: links)
        }
    }

    /// The owners whose rows it is sent.
    var owners: [SyncID] { [owner] + links.map(\.owner) }

    /// The batch that has no outcome yet.
    var unsettled: BatchName? { pending.map { book.name($0.number) } }

    // MARK: Actions

    /// Writes until enough was written, then until its last batch has its outcome.
    func write() {
        while !run.isDone, revocation?.hasEnded != true { act() }
        while pending != nil, revocation == nil, !run.isExpired { act() }
    }

    /// Pulls until nothing is left; `false` where a request failed.
    func drain() -> Bool { pull(limit: 1000) }

    private func act() {
        if pending == nil { edit() }
        guard let batch = pending else { return }
        if batch.isAcknowledged {
            switch random.number(0...9) {
            case 0...4: lookUp(batch)
            case 5...7: pull(limit: 1000, including: batch.number)
            default: sync(batch)
            }
        } else {
            switch random.number(0...9) {
            case 0...5: sync(batch)
            case 6...7: upload(batch, wait: nil)
            default: upload(batch, wait: random.number(1...10))
            }
        }
        if pending == nil {
            if random.once(in: 2) { pull(limit: random.pick([50, 1000])) }
            if random.once(in: 12), let earlier { repeatEarlier(earlier) }
        }
    }

    private func edit() {
        let count = random.number(plan.batch.lowerBound...plan.batch.upperBound)
        let now = Int64(time(nil)) * 1_000_000
        let others = links.map(\.owner)
        let edits = (0..<count).map { _ in
            let target = others.isEmpty || random.number(0...9) < 7 ? owner : random.pick(others)
            return Edit(
                random, plan.schema, rowCount: plan.rows, owner: target, seen: { [copy] in copy.seen(target, $0, $1) },
                now: now)
        }
        let json = "[\(edits.map { $0.json(plan.schema) }.joined(separator: ","))]"
        pending = Pending(
            number: next, isAtomic: random.once(in: 8), edits: edits, json: json, began: SystemCall.nanoseconds())
        book.begin(next, edits)
        run.events.record("\(book.name(next)): \(count) changes")
        next += 1
    }

    // MARK: Requests

    private func sync(_ batch: Pending) {
        let before = copy.vector
        let limit = random.pick([20, 1000])
        guard
            let response = send(
                "/v1/sync", body(batch, #"\#(copy.requestFields),"limit":\#(limit)"#), batch, wait: nil)
        else { return }
        guard response.status == 200, let answer = read(response) else { return }
        let written = PageJudge.Written.of(batch.edits, answer.results, by: name, plan.schema)
        take(answer, of: batch)
        takePage(answer, before: before, covering: written, of: batch.number)
    }

    private func upload(_ batch: Pending, wait: Int?) {
        guard let response = send("/v1/upload", body(batch, nil), batch, wait: wait) else { return }
        if response.status == 200, let answer = read(response) { take(answer, of: batch) }
    }

    /// Sends a batch to any gateway; at times the answer is not read.
    private func send(_ path: String, _ body: String, _ batch: Pending, wait: Int?) -> GatewayClient.Response? {
        let gateway = random.number(0...plan.gateways.count - 1)
        let reads = !random.once(in: 30)
        book.sent(batch.number)
        let response = client.post(path, body, to: gateway, wait: wait, reads: reads)
        let isDurable =
            response.map { [200, 202].contains($0.status) || $0.hasCode("outcome_pending") } ?? false
        run.events.record(
            "\(book.name(batch.number)): \(path) at gateway \(gateway + 1): "
                + (response.map { "\($0.status)\(isDurable ? "" : " \($0.text)")" }
                    ?? (reads ? "no answer" : "not read")))
        if isDurable {
            book.acknowledged(batch.number)
            if pending?.number == batch.number, pending?.isAcknowledged == false {
                pending?.isAcknowledged = true
                run.acknowledged(batch.edits.count)
            }
        }
        settle(after: response)
        return response
    }

    /// Asks for the outcome of the batch.
    private func lookUp(_ batch: Pending) {
        let gateway = random.number(0...plan.gateways.count - 1)
        let response = client.get("/v1/batches/\(batch.number)?knowledgeId=\(name)", from: gateway)
        run.events.record(
            "\(book.name(batch.number)): look-up at gateway \(gateway + 1): \(response.map { "\($0.status)" } ?? "no answer")"
        )
        settle(after: response, isExpected: [202, 404])
        guard let response, response.status == 200, let answer = read(response) else { return }
        take(answer, of: batch)
    }

    private func repeatEarlier(_ batch: Pending) {
        guard let response = send("/v1/upload", body(batch, nil), batch, wait: 10) else { return }
        if response.status == 200, let answer = read(response) { take(answer, of: batch) }
    }

    @discardableResult
    private func pull(limit: Int, including batch: Int64? = nil) -> Bool {
        let wait = random.once(in: 20) && !run.isDone ? random.number(1...2) : 0
        while true {
            let before = copy.vector
            var fields = #"\#(copy.requestFields),"limit":\#(limit),"wait":\#(wait)"#
            if random.once(in: 10) { fields += #","compact":true"# }
            if let batch { fields += #","include":[\#(batch)]"# }
            let gateway = random.number(0...plan.gateways.count - 1)
            let began = SystemCall.nanoseconds()
            let response = client.post("/v1/pull", body(nil, fields), to: gateway)
            // Others wait for an event or an outcome.
            if wait == 0, batch == nil {
                run.waits.pulled(by: "\(owner)/\(name)", from: began, isAnswered: response?.status == 200)
            }
            settle(after: response)
            guard let response, response.status == 200, let answer = read(response) else { return false }
            takePage(answer, before: before)
            if answer.hasMore { continue }
            if let batch, pending?.number == batch { drained[batch, default: []].append(copy.vector) }
            return true
        }
    }

    private func body(_ batch: Pending?, _ fields: String?) -> String {
        var parts = [#""knowledgeId":"\#(name)""#]
        if let batch {
            parts.append(#""batch":\#(batch.number)"#)
            if batch.isAtomic { parts.append(#""atomic":true"#) }
            parts.append(#""changes":\#(batch.json)"#)
        }
        if let fields { parts.append(fields) }
        return "{\(parts.joined(separator: ","))}"
    }

    private func read(_ response: GatewayClient.Response) -> Answer? {
        do {
            return try Answer(response.body)
        } catch {
            // Whole in the events: what is wrong may be anywhere in it.
            run.events.record("\(owner)/\(name): not JSON: \(String(decoding: response.body, as: UTF8.self))")
            let text = "an answer of \(response.body.count) bytes is not JSON (\(error)): \(response.text)"
            run.found(Finding(kind: .wrongOutcome, text: "\(owner)/\(name): \(text)"))
            return nil
        }
    }

    /// Pauses after a failure, longer after several.
    private func settle(after response: GatewayClient.Response?, isExpected: Set<Int> = []) {
        if let response, let revocation {
            if let text = revocation.judge(response, from: client.newest.gateway, sent: client.newest.sent) {
                run.found(Finding(kind: .revoked, text: "\(owner)/\(name) \(text)"))
            }
            // Asks again soon, as somebody would who has found the device.
            if response.hasCode("device_revoked") {
                return SystemCall.wait(until: SystemCall.nanoseconds() + 20_000_000)
            }
        }
        if let response, [200, 202].contains(response.status) {
            failures = 0
            if !isExpected.contains(response.status) { return }
        }
        if let status = response?.status, ![200, 202, 404, 408, 429, 503, 504].contains(status) {
            run.found(
                Finding(kind: .wrongOutcome, text: "\(owner)/\(name): the answer is \(status) \(response?.text ?? "")"))
        }
        failures += 1
        let longest = min(1000, 40 << min(failures, 6))
        SystemCall.wait(until: SystemCall.nanoseconds() + Int64(random.number(10...longest)) * 1_000_000)
    }

    // MARK: Answers

    private func take(_ answer: Answer, of batch: Pending) {
        guard answer.hasBatch else { return }
        let known = book.entries[batch.number]?.outcome != nil
        let findings = book.take(answer, of: batch.number)
        for finding in findings { run.found(finding) }
        guard answer.refusal == nil, answer.results.count == batch.edits.count else {
            // Reported; with a batch that cannot settle, the device could not continue.
            if pending?.number == batch.number { pending = nil }
            return
        }
        for (result, edit) in zip(answer.results, batch.edits) {
            copy.apply(result, of: edit, by: name, plan.schema)
        }
        let written = PageJudge.Written.of(batch.edits, answer.results, by: name, plan.schema)
        for vector in drained.removeValue(forKey: batch.number) ?? [] {
            let found = PageJudge.judgeDrained(
                vector, covering: written, "\(owner)/\(name)", book.name(batch.number))
            for finding in found { run.found(finding) }
        }
        if !known { run.events.record("\(book.name(batch.number)): has its outcome") }
        if pending?.number == batch.number {
            run.waits.settled(book.name(batch.number), from: batch.began)
            earlier = pending
            pending = nil
        }
    }

    private func takePage(
        _ answer: Answer, before: PageJudge.Vector, covering written: [PageJudge.Written] = [], of number: Int64? = nil
    ) {
        for row in answer.rows { copy.apply(row, plan.schema) }
        copy.applyVector(of: answer)
        let batch = number.map(book.name)
        let findings = pages.judge(answer, before: before, after: copy.vector, covering: written, of: batch)
        for finding in findings { run.found(finding) }
    }
}

extension GatewayClient.Response {
    /// The beginning of the body.
    var text: String { String(decoding: body.prefix(300), as: UTF8.self) }
}

/// What all devices of a run have in common.
struct DevicePlan: Sendable {
    let gateways: [UInt16]
    let tokens: TokenIssuer
    let schema: Schema
    /// How many changes a batch has.
    let batch: ClosedRange<Int>
    /// How many ids each table of an owner has; with few, edits conflict.
    let rows: Int
}

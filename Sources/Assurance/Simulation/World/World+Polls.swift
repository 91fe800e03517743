import DeviceModel
import HTTP
import SyncModel

extension World {
    /// Plays long polls without faults: when what a poll waits for is in every stream, the poll must end.
    func playPolls() async {
        for round in 1...2 where violation == nil && devices.count > 1 {
            record("long polls, round \(round)")
            let writer = random.pick(devices)
            let polls = devices.filter { $0 !== writer && $0.granted.contains(writer.caller) }
            if polls.isEmpty { continue }
            await withTaskGroup(of: Void.self) { group in
                for poll in polls {
                    group.addTask { [self] in
                        await pause(upTo: .seconds(4))
                        await poll.poll()
                    }
                }
                group.addTask { [self] in
                    await pause(upTo: .seconds(8))
                    await writer.writeRow()
                    await judge(polls, of: writer.caller)
                }
            }
        }
    }

    /// Runs a closure while a timer is always near.
    ///
    /// The run's time skips to the next timer now and then, also while tasks can run: as if they took that long. So without
    /// nearer timers a request could exceed any limit.
    func withTicks(_ body: () async -> Void) async {
        isTicking = true
        tick()
        await body()
        isTicking = false
    }

    private func tick() {
        guard isTicking else { return }
        _ = scheduler.schedule(at: scheduler.now + .seconds(1)) { [self] in tick() }
    }

    /// How long an answer may take once nothing else is to be done: several times the longest delays on its way.
    static let answerTime: Duration = .seconds(12)

    private func judge(_ polls: [SimulatedDevice], of owner: SyncID) async {
        await until("what was written is in the streams") { await self.isQuiet() }
        let end = scheduler.now + Self.answerTime
        while scheduler.now < end { await sleep(.seconds(1)) }
        for poll in polls {
            guard let pollEnd = poll.pollEnd, pollEnd > scheduler.now,
                poll.memory.copy.head(of: owner) < streams.head(of: owner).rawValue
            else { continue }
            fail(.progress, "\(poll.name): a long poll is not woken by \(owner) at \(streams.head(of: owner))")
        }
    }
}

/// Long polls, and the writes that end them.
extension SimulatedDevice {
    private static let longestWait = 50

    /// Waits for something new.
    func poll() async {
        pollEnd = world.scheduler.now + .seconds(Self.longestWait)
        defer { pollEnd = nil }
        let fields = #"\#(memory.copy.requestFields),"limit":1000,"wait":\#(Self.longestWait)"#
        let vector = memory.copy.vector
        let start = world.scheduler.now
        guard let response = await post("/v1/pull", body(nil, fields), mayTimeOut: false), response.status == 200,
            let answer = read(response)
        else { return }
        if world.scheduler.now < start + .seconds(Self.longestWait) { checkHasNews(answer, since: vector) }
        takePull(answer, isCompact: false)
    }

    /// Creates a row, and waits for the outcome, which must come.
    func writeRow() async {
        let edit = Edit(newRow: "poll\(memory.nextNumber)", of: caller, writable, random)
        let batch = Batch(number: memory.nextNumber, isAtomic: false, edits: [edit], json: "[\(edit.json(schema))]")
        // After a backup was restored the number may be an earlier one: its outcome is refused, and not kept.
        let isNewest = memory.nextNumber > sentNumbers.max() ?? 0
        sentNumbers.insert(memory.nextNumber)
        memory.nextNumber += 1
        world.audit.admission.record([edit], json: batch.json)
        let includes = world.scenario.outcomeWait > World.answerTime && random.once(in: 2) && isNewest
        // A gateway that is full accepts it later.
        for _ in 0..<10 {
            let headers = includes ? [] : [("Prefer", "wait=\(Self.longestWait)")]
            guard
                let response = await post(
                    "/v1/upload", body(batch, nil), headers: headers, changes: 1, mayTimeOut: false)
            else { return }
            switch response.status {
            case 202 where includes: return await include(batch)
            case 200:
                if let answer = read(response) { take(answer, of: batch) }
                return
            case 202:
                return world.fail(.progress, "\(name): the outcome of batch \(batch.number ?? 0) is not passed on")
            default: await world.sleep(.seconds(2))
            }
        }
    }

    /// Pulls with the outcome of a batch, for which the pull must not wait as long as it may.
    private func include(_ batch: Batch) async {
        guard let number = batch.number else { return }
        let start = world.scheduler.now
        let fields = #"\#(memory.copy.requestFields),"limit":1000,"include":[\#(number)]"#
        guard let response = await post("/v1/pull", body(nil, fields), mayTimeOut: false) else { return }
        if response.status == 504 || response.status == 200, world.scheduler.now >= start + world.scenario.outcomeWait {
            return world.fail(.progress, "\(name): a pull is not woken by the outcome of batch \(number)")
        }
        guard response.status == 200, let answer = read(response) else { return }
        takePull(answer, isCompact: false)
        checkCovers(number, answer)
    }
}

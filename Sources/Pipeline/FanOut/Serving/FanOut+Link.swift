import AsyncPrimitives
import ChangeLog
import FanOutLink
import Metrics
import SyncModel

/// Pulls and subscriptions.
extension FanOut: FanOutLink {
    /// `nil` also when the vector is above the stream.
    package func idlePage(_ request: OwnerPull) -> OwnerPage? {
        guard let heads = partition(of: request.owner)?.readyHeads(of: request.owner),
            let page = idlePage(request, heads)
        else { return nil }
        metrics.idlePulls.add()
        return page
    }

    /// Reads one page of each owner's stream, owner after owner, until the page's limits are reached.
    ///
    /// The entries are those of ``PullPlan``.
    package func pull(_ request: PagePull, within limit: Duration) async throws(FanOutError) -> [OwnerPage] {
        let watch = Stopwatch()
        do throws(FanOutError) {
            let pages = try await pages(of: request, within: limit)
            metrics.record(pages, watch)
            return pages
        } catch {
            metrics.recordFailedPull(watch)
            throw error
        }
    }

    private func pages(of request: PagePull, within limit: Duration) async throws(FanOutError) -> [OwnerPage] {
        var pages: [OwnerPage?] = Array(repeating: nil, count: request.owners.count)
        var reads: [OwnerRead] = []
        let changed = try await waitForStreams(request.owners, within: limit)
        for (position, pull) in request.owners.enumerated() {
            let partition = try served(pull.owner)
            let snapshot = try partition.headSnapshot(of: pull.owner)
            if changed.contains(position), snapshot.heads.head < pull.requiredHead {
                pages[position] = OwnerPage(owner: pull.owner, content: .historyChanged)
            } else if let page = idlePage(pull, snapshot.heads) {
                pages[position] = page
            } else if snapshot.heads.head < pull.requiredHead {
                throw .notReady("the stream was rebuilt in the meantime")
            } else {
                reads.append(OwnerRead(position: position, pull: pull, partition: partition, snapshot: snapshot))
            }
        }
        try await readRows(reads, of: request, into: &pages)
        return pages.compactMap(\.self)
    }

    /// Reads rows step by step, so that other owners have their turns in between.
    private func readRows(
        _ reads: [OwnerRead], of request: PagePull, into pages: inout [OwnerPage?]
    ) async throws(FanOutError) {
        var budget = PageBudget(
            rows: request.limit, bytes: request.maximumBytes, isContinued: request.isContinued)
        var records = 0
        for group in reads.groupedByFile {
            var rest = group[...]
            var passed = TimeStamp.zero
            while let next = rest.first {
                // Only held rows require a look whether there is another one.
                if budget.isExhausted, next.pull.held.isEmpty {
                    pages[next.position] = next.unread
                    rest.removeFirst()
                    continue
                }
                let step = try await read(
                    next.partition, of: next.pull.owner, generation: next.snapshot.generation
                ) { [rest, budget, passed, comparedHeads = metrics.comparedHeads] in
                    try $0.step(rest, passed: passed, budget: budget, compared: comparedHeads)
                }
                for (read, rows) in zip(rest, step.pages) {
                    pages[read.position] = OwnerPage(owner: read.pull.owner, content: .rows(rows))
                }
                rest = rest.dropFirst(step.pages.count)
                passed = step.stoppedAt ?? .zero
                budget = step.budget
                records += step.records
            }
        }
        metrics.pullRecords.record(records)
    }

    package func heads(of owners: [SyncID]) async throws(FanOutError) -> [TimeStamp] {
        var heads: [TimeStamp] = []
        heads.reserveCapacity(owners.count)
        for owner in owners { heads.append(try served(owner).headSnapshot(of: owner).heads.head) }
        return heads
    }

    /// Heads of owners that are not served here never advance.
    ///
    /// `moved` must not cancel the subscription itself.
    package func subscribe(
        to owners: [SyncID], moved: @escaping @Sendable (SyncID, TimeStamp) -> Void
    ) -> any FanOutSubscription {
        let subscriptions = owners.compactMap { owner in partition(of: owner).map { ($0.subscriptions, owner) } }
        return OwnersSubscription(Subscriber(moved), subscriptions: subscriptions)
    }

    /// Above, devices are compared by a reader in its owner's turn, not by a thread that all requests share.
    private static var maximumCompared: Int { 1000 }

    private func idlePage(_ pull: OwnerPull, _ heads: OwnerHeads) -> OwnerPage? {
        guard pull.requiredHead <= heads.head else { return nil }
        if heads.devices.count > Self.maximumCompared, PullPlan.comparesAll(pull.knowledge, heads) { return nil }
        let plan = PullPlan(pull.knowledge, heads: heads, compared: metrics.comparedHeads)
        guard plan.isEmpty else { return nil }
        let (entries, floor) = plan.drained(maximum: pull.maximumEntries)
        return OwnerPage(
            owner: pull.owner, content: .rows(OwnerRows(entries: entries, floor: floor, head: heads.head)))
    }

    /// Waits for streams that are behind the vectors or the previous pages.
    ///
    /// - Returns: the indexes of the owners whose vector is also above the end of the log.
    func waitForStreams(_ pulls: [OwnerPull], within limit: Duration) async throws(FanOutError) -> Set<Int> {
        var ahead: [(position: Int, pull: OwnerPull)] = []
        for (position, pull) in pulls.enumerated() {
            let head = try served(pull.owner).headSnapshot(of: pull.owner).heads.head
            if pull.requiredHead > head { ahead.append((position, pull)) }
        }
        if ahead.isEmpty { return [] }
        let waiter = Promise<Result<Set<Int>, FanOutError>>()
        let behind = FanOutError.notReady("the stream is behind the device's knowledge vector")
        return try await withTaskGroup(of: Void.self) { [ahead] group in
            group.addTask {
                do throws(FanOutError) {
                    var changed: Set<Int> = []
                    for (position, pull) in ahead where try await self.hasEnded(pull, within: limit) {
                        changed.insert(position)
                    }
                    waiter.fulfil(.success(changed))
                } catch {
                    waiter.fulfil(.failure(error))
                }
            }
            let result = await waiter.value(
                within: limit, clock: self.clock, late: .failure(behind), cancelled: .failure(.closed))
            group.cancelAll()
            return result
        }.get()
    }

    /// Waits for a stream that is behind a vector; returns true when the vector is also above the end of the log.
    private func hasEnded(_ pull: OwnerPull, within limit: Duration) async throws(FanOutError) -> Bool {
        let partition = try served(pull.owner)
        let end: Int64
        do throws(ChangeLogError) {
            end = try await log.range(of: TopicPartition(.ordered, partition.number)).end
        } catch {
            throw .notReady("the end offset of ordered could not be read: \(error)")
        }
        let reach = pull.requiredHead
        guard try await partition.catchUp(pull.owner, to: reach, or: end, within: limit, clock: clock) else {
            throw .notReady("the stream is behind the device's knowledge vector")
        }
        return try partition.headSnapshot(of: pull.owner).heads.head < reach
    }
}

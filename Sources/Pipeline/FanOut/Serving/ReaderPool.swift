import AsyncPrimitives
import FanOutLink
import Metrics
import SyncModel
import Synchronization
import ThreadExecutor

/// The threads that read stream files.
///
/// Each has its own connection to every file that it reads. Owners take turns, and every read is bounded (``PageStep``,
/// ``RowSearch``). The first of several threads is for owners whose reads are short, and the others run in the background, so that
/// long reads, of which one owner may have many, hardly delay those of others.
final class ReaderPool: Sendable {
    /// Whose turn a read takes.
    private struct Key: Hashable {
        let partition: Int
        let owner: SyncID
    }

    private struct State {
        /// Nanoseconds for which an owner's long read is remembered.
        let memory: Int
        /// The threads without a read.
        var idle: [Int]
        /// Reads that wait for a thread, whether their owners had a long one before; fulfilled with its number.
        var queue = FairQueue<Key, (key: Key, isLong: Bool, turn: Promise<Int>)>()
        /// The running and queued reads of each key; in total at most ``FanOutConfiguration/maximumReads``.
        var counts: [Key: Int] = [:]
        var total = 0
        /// The owners that had a long read lately, and since when.
        var long: [Key: Stopwatch] = [:]
        /// The number of these at which those that are not recent are removed.
        var sweepAt = 64
        /// The running reads of each partition.
        var running: [Int: Int] = [:]
        /// Partitions whose reads wait, with what is fulfilled by their last running read.
        var paused: [Int: Promise<Void>] = [:]
        var isClosed = false
        /// Fulfilled by the last read after ``ReaderPool/close()``.
        var ended: Promise<Void>?

        /// Assigns idle threads to the reads whose turns they are.
        mutating func start(of threads: Int) -> [(turn: Promise<Int>, thread: Int)] {
            var started: [(turn: Promise<Int>, thread: Int)] = []
            for thread in idle.sorted() {
                let isForShortReads = thread == 0 && threads > 1
                let next = queue.take { key, read in
                    let isLong = isForShortReads && (read.isLong || Self.isRecent(long[key], within: memory))
                    return paused[key.partition] == nil && !isLong
                }
                guard let next else { continue }
                idle.removeAll { $0 == thread }
                running[next.key.partition, default: 0] += 1
                started.append((next.turn, thread))
            }
            return started
        }

        /// Asked when a read is queued, since it may wait for longer than long reads are remembered, and before it begins.
        static func isRecent(_ longRead: Stopwatch?, within memory: Int) -> Bool {
            longRead.map { $0.nanoseconds < memory } ?? false
        }

        /// Notes how long a read has computed.
        mutating func ended(_ key: Key, nanoseconds: Int) {
            guard nanoseconds >= ReaderPool.longRead else { return }
            long[key] = Stopwatch()
            guard long.count >= sweepAt else { return }
            long = long.filter { Self.isRecent($0.value, within: memory) }
            sweepAt = max(64, 2 * long.count)
        }
    }

    /// A read that computes so long may keep others waiting: a page of 1000 small rows takes a millisecond or two.
    private static let longRead = 5_000_000

    private let threads: [ReaderThread]
    private let maximum: Int
    private let state: Mutex<State>

    init(_ configuration: FanOutConfiguration) async throws(ThreadStartError) {
        var threads: [ReaderThread] = []
        for number in 0..<configuration.readerThreads {
            do throws(ThreadStartError) {
                threads.append(try ReaderThread(number: number, isBackground: number > 0))
            } catch {
                for thread in threads { await thread.thread.close() }
                throw error
            }
        }
        self.threads = threads
        maximum = configuration.maximumReads
        state = Mutex(
            State(memory: configuration.longReadMemory * 1_000_000_000, idle: Array(threads.indices)))
    }

    /// Runs a closure in a snapshot of a partition's file, once a thread is free and it is the owner's turn.
    ///
    /// - Parameters:
    ///   - owner: the owner in whose turn it is read.
    ///   - generation: the expected generation of the file.
    func read<Result: Sendable>(
        _ partition: ServedPartition, of owner: SyncID, generation: Int,
        _ body: @escaping @Sendable (FileReader) throws -> Result
    ) async throws(FanOutError) -> Result {
        let key = Key(partition: partition.number, owner: owner)
        let turn = try enqueue(key)
        // Not cancellable: the thread has to be released.
        let chosen = await turn.value()
        let time = ComputingTime()
        defer { release(chosen, key, time.nanoseconds) }
        // The caller is gone.
        if Task.isCancelled { throw .closed }
        do {
            let result = try await threads[chosen].read(
                partition: partition.number, path: partition.path, generation: generation
            ) { file in
                try time.measure { try body(file) }
            }
            // Discards a result when the file was found damaged in the meantime.
            try partition.require(generation: generation)
            return result
        } catch let error as FanOutError {
            throw error
        } catch {
            let failure = StreamFailure(cause: error) ?? .unavailable("\(error)")
            if failure.needsRebuild { partition.reportDamage(failure.description, generation: generation) }
            throw .notReady(failure.description)
        }
    }

    /// Runs a closure while no read of a partition runs; those that arrive meanwhile wait.
    ///
    /// One caller at a time for each partition.
    func withoutReads<Result: Sendable>(
        of partition: Int, _ body: () async throws -> Result
    ) async throws -> Result {
        let idle = Promise<Void>()
        let isIdle = state.withLock { state in
            precondition(state.paused[partition] == nil, "the reads of a partition are paused once at a time")
            state.paused[partition] = idle
            return state.running[partition] == nil
        }
        // Not cancellable, and bounded as every read is.
        if !isIdle { await idle.value() }
        defer { resume(partition) }
        return try await body()
    }

    /// Closes all connections to a partition's file; queued reads of it fail.
    func evict(_ partition: ServedPartition) async {
        let generation = partition.newestGeneration
        for thread in threads { await thread.evict(partition: partition.number, generation: generation) }
    }

    /// Waits for running and queued reads, then ends the threads.
    func close() async {
        let ended = Promise<Void>()
        let isIdle = state.withLock { state in
            state.isClosed = true
            state.ended = ended
            return state.total == 0
        }
        if isIdle { ended.fulfil(()) }
        // Not cancellable: a thread must not end while a read uses it.
        await ended.value()
        for thread in threads {
            await thread.closeFiles()
            await thread.thread.close()
        }
    }

    // MARK: Turns

    /// - Returns: fulfilled with the number of a thread, which belongs to the read until ``release(_:_:_:)``.
    private func enqueue(_ key: Key) throws(FanOutError) -> Promise<Int> {
        let turn = Promise<Int>()
        let started = try state.withLock { state throws(FanOutError) in
            if state.isClosed { throw .closed }
            let count = state.counts[key, default: 0]
            // An owner has at most as many reads as are free: one alone gets half of all, and others always find some.
            guard count < maximum - state.total else { throw .notReady("too many reads are queued") }
            state.counts[key] = count + 1
            state.total += 1
            let isLong = State.isRecent(state.long[key], within: state.memory)
            state.queue.append((key, isLong, turn), for: key)
            return state.start(of: threads.count)
        }
        for (turn, thread) in started { turn.fulfil(thread) }
        return turn
    }

    private func release(_ thread: Int, _ key: Key, _ nanoseconds: Int) {
        let (started, idle, ended) = state.withLock { state in
            state.ended(key, nanoseconds: nanoseconds)
            state.idle.append(thread)
            state.total -= 1
            state.counts[key] = state.counts[key].flatMap { $0 > 1 ? $0 - 1 : nil }
            state.running[key.partition] = state.running[key.partition].flatMap { $0 > 1 ? $0 - 1 : nil }
            let idle = state.running[key.partition] == nil ? state.paused[key.partition] : nil
            return (state.start(of: threads.count), idle, state.isClosed && state.total == 0 ? state.ended : nil)
        }
        for (turn, thread) in started { turn.fulfil(thread) }
        idle?.fulfil(())
        ended?.fulfil(())
    }

    private func resume(_ partition: Int) {
        let started = state.withLock { state in
            state.paused[partition] = nil
            return state.start(of: threads.count)
        }
        for (turn, thread) in started { turn.fulfil(thread) }
    }
}

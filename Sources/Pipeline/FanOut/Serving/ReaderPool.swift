import AsyncPrimitives
import FanOutLink
import Synchronization
import ThreadExecutor

/// The threads that read stream files.
///
/// Each has its own connection to every file that it reads.
final class ReaderPool: Sendable {
    private struct State {
        /// The running and queued reads of each thread; in total at most ``FanOutConfiguration/maximumReads``.
        var loads: [Int]
        var isClosed = false
        /// Fulfilled by the last read after ``ReaderPool/close()``.
        var idle: Promise<Void>?
    }

    private let threads: [ReaderThread]
    private let maximum: Int
    private let state: Mutex<State>

    init(_ configuration: FanOutConfiguration) async throws(ThreadStartError) {
        var threads: [ReaderThread] = []
        for number in 0..<configuration.readerThreads {
            do throws(ThreadStartError) {
                threads.append(try ReaderThread(number: number))
            } catch {
                for thread in threads { await thread.thread.close() }
                throw error
            }
        }
        self.threads = threads
        maximum = configuration.maximumReads
        state = Mutex(State(loads: Array(repeating: 0, count: threads.count)))
    }

    /// Runs a closure in a snapshot of a partition's file, on the thread with the fewest reads.
    ///
    /// - Parameter generation: the expected generation of the file.
    func read<Result: Sendable>(
        _ partition: ServedPartition, generation: Int,
        _ body: @escaping @Sendable (FileReader) throws -> Result
    ) async throws(FanOutError) -> Result {
        let chosen = try choose()
        defer { release(chosen) }
        do {
            let result = try await threads[chosen].read(
                partition: partition.number, path: partition.path, generation: generation, body)
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

    /// Closes all connections to a partition's file; queued reads of it fail.
    func evict(_ partition: ServedPartition) async {
        let generation = partition.newestGeneration
        for thread in threads { await thread.evict(partition: partition.number, generation: generation) }
    }

    /// Waits for running reads, then ends the threads.
    func close() async {
        let idle = Promise<Void>()
        let isIdle = state.withLock { state in
            state.isClosed = true
            state.idle = idle
            return state.loads.allSatisfy { $0 == 0 }
        }
        if isIdle { idle.fulfil(()) }
        // Not cancellable: a thread must not end while a read uses it.
        await idle.value()
        for thread in threads {
            await thread.closeFiles()
            await thread.thread.close()
        }
    }

    private func choose() throws(FanOutError) -> Int {
        try state.withLock { state throws(FanOutError) in
            if state.isClosed { throw .closed }
            guard state.loads.reduce(0, +) < maximum else { throw .notReady("too many reads are queued") }
            var least = 0
            for index in state.loads.indices where state.loads[index] < state.loads[least] { least = index }
            state.loads[least] += 1
            return least
        }
    }

    private func release(_ chosen: Int) {
        let idle = state.withLock { state -> Promise<Void>? in
            state.loads[chosen] -= 1
            return state.isClosed && state.loads.allSatisfy { $0 == 0 } ? state.idle : nil
        }
        idle?.fulfil(())
    }
}

private actor ReaderThread {
    nonisolated let thread: DedicatedThread
    private var files: [Int: (generation: Int, reader: FileReader)] = [:]
    /// The newest generation of each partition that must no longer be read.
    private var evicted: [Int: Int] = [:]

    init(number: Int) throws(ThreadStartError) { thread = try DedicatedThread(name: "weir-fan-r\(number)") }

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    func read<Result: Sendable>(
        partition: Int, path: String, generation: Int, _ body: @Sendable (FileReader) throws -> Result
    ) throws -> Result {
        if let gone = evicted[partition], generation <= gone {
            throw FanOutError.notReady("the stream is being rebuilt")
        }
        let reader = try reader(partition, path, generation)
        do {
            return try reader.snapshot { try body(reader) }
        } catch {
            // The state of the connection is unknown; the next read opens a new one.
            closeFile(partition)
            throw error
        }
    }

    func evict(partition: Int, generation: Int) {
        evicted[partition] = max(evicted[partition] ?? generation, generation)
        closeFile(partition)
    }

    func closeFiles() {
        for partition in Array(files.keys) { closeFile(partition) }
    }

    private func reader(_ partition: Int, _ path: String, _ generation: Int) throws -> FileReader {
        if let file = files[partition], file.generation == generation { return file.reader }
        closeFile(partition)
        let reader = try FileReader(path: path)
        files[partition] = (generation, reader)
        return reader
    }

    private func closeFile(_ partition: Int) {
        guard let file = files.removeValue(forKey: partition) else { return }
        do {
            try file.reader.close()
        } catch {
            // A read-only connection has no data to lose; busy would mean that a statement outlived its read.
            assertionFailure("\(error)")
        }
    }
}

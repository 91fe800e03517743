import FanOutLink
import ThreadExecutor

/// One of the threads of a ``ReaderPool``, with its connections.
actor ReaderThread {
    nonisolated let thread: DedicatedThread
    private var files: [Int: (generation: Int, reader: FileReader)] = [:]
    /// The newest generation of each partition that must no longer be read.
    private var evicted: [Int: Int] = [:]

    init(number: Int, isBackground: Bool) throws(ThreadStartError) {
        thread = try DedicatedThread(name: "weir-fan-r\(number)", isBackground: isBackground)
    }

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

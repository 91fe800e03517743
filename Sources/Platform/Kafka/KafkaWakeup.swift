import CRdkafka
import Glibc
import Synchronization
import ThreadExecutor

/// Tells readers that their queues have something, on one thread for any number of them.
///
/// librdkafka writes a queue's number into a pipe when the queue was empty and is not any more.
package final class KafkaWakeup: Sendable {
    /// What stands for a reader.
    package typealias Number = UInt64

    private let listeners = Listeners()
    private let thread: DedicatedThread
    private let listening: Task<Void, Never>
    private let input: Int32

    /// Starts the thread.
    package init() throws(KafkaError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            throw KafkaError(.invalidArgument, message: "no pipe could be made: \(String(cString: strerror(errno)))")
        }
        let (output, input) = (ends[0], ends[1])
        let thread: DedicatedThread
        do {
            for end in ends where fcntl(end, F_SETFD, FD_CLOEXEC) != 0 {
                throw KafkaError(.invalidArgument, message: "a pipe could not be set up")
            }
            thread = try DedicatedThread(name: "weir-kafka-bell")
        } catch {
            closeDescriptor(output)
            closeDescriptor(input)
            throw error as? KafkaError ?? KafkaError(.invalidArgument, message: "\(error)")
        }
        self.thread = thread
        self.input = input
        listening = Task { [listeners] in
            await thread.run { Self.listen(output) { listeners.ring($0) } }
            await thread.close()
        }
    }

    /// Adds a listener, who may be called at any time, also for nothing, and returns quickly.
    package func add(_ listener: @escaping @Sendable () -> Void) -> Number { listeners.add(listener) }

    /// Removes a listener.
    package func remove(_ number: Number) { listeners.remove(number) }

    /// Has a queue ring.
    func attach(_ number: Number, to queue: OpaquePointer) {
        // Copied within the call. librdkafka would have the pipe not block, so that its threads never wait for a reader;
        // but a number that finds the pipe full must not be lost, and whoever empties it takes no lock of librdkafka.
        withUnsafeBytes(of: number) { rd_kafka_queue_io_event_enable(queue, input, $0.baseAddress, $0.count) }
    }

    /// Ends the thread, once every queue that rings is gone.
    package func close() async {
        // No number is 0.
        withUnsafeBytes(of: 0 as Number) { bytes in
            var written = 0
            repeat { written = write(input, bytes.baseAddress, bytes.count) } while written < 0 && errno == EINTR
            precondition(written == bytes.count, "a pipe of one's own can be written to")
        }
        await listening.value
        closeDescriptor(input)
    }

    /// Calls a body with every number that comes through a pipe, up to 0.
    private static func listen(_ output: Int32, _ body: (Number) -> Void) {
        defer { closeDescriptor(output) }
        let size = MemoryLayout<Number>.size
        var numbers = [Number](repeating: 0, count: 512)
        while true {
            // Numbers are written whole, since they are shorter than what a pipe takes at once, so they are read whole.
            let count = numbers.withUnsafeMutableBytes { read(output, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            precondition(count > 0 && count % size == 0, "a pipe of one's own can be read from")
            for number in numbers[..<(count / size)] {
                if number == 0 { return }
                body(number)
            }
        }
    }
}

/// Who is to be told.
private final class Listeners: Sendable {
    private struct State {
        var last: KafkaWakeup.Number = 0
        /// One for each reader.
        var all: [KafkaWakeup.Number: @Sendable () -> Void] = [:]
    }

    private let state = Mutex(State())

    func add(_ listener: @escaping @Sendable () -> Void) -> KafkaWakeup.Number {
        state.withLock { state in
            state.last += 1
            state.all[state.last] = listener
            return state.last
        }
    }

    func remove(_ number: KafkaWakeup.Number) { state.withLock { _ = $0.all.removeValue(forKey: number) } }

    func ring(_ number: KafkaWakeup.Number) { state.withLock { $0.all[number] }?() }
}

/// Closes a descriptor; outside of the class, whose own `close()` hides the system's.
private func closeDescriptor(_ descriptor: Int32) {
    // Nothing can be done about a descriptor that does not close.
    _ = close(descriptor)
}

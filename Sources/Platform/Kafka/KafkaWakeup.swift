import CRdkafka
import Glibc
import Synchronization
import ThreadExecutor

/// Calls listeners when their queues are no longer empty, on one thread for any number of queues.
///
/// librdkafka writes a listener's number into a pipe when the listener's queue was empty and is not any more.
package final class KafkaWakeup: Sendable {
    /// Identifies a listener; never 0.
    package typealias Listener = UInt64

    private struct State {
        var last: Listener = 0
        var listeners: [Listener: @Sendable () -> Void] = [:]
    }

    private final class Listeners: Sendable {
        let state = Mutex(State())
    }

    /// Shared with the thread, which must not retain this object.
    private let shared = Listeners()
    private let thread: DedicatedThread
    private let listening: Task<Void, Never>
    private let input: Int32

    /// Starts the thread.
    package init() throws(KafkaError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            throw KafkaError(.invalidArgument, message: "a pipe cannot be created: \(String(cString: strerror(errno)))")
        }
        let (output, input) = (ends[0], ends[1])
        let thread: DedicatedThread
        do {
            for end in ends where fcntl(end, F_SETFD, FD_CLOEXEC) != 0 {
                throw KafkaError(.invalidArgument, message: "a pipe cannot be set to close on exec")
            }
            thread = try DedicatedThread(name: "weir-kafka-wake")
        } catch {
            closeDescriptor(output)
            closeDescriptor(input)
            throw error as? KafkaError ?? KafkaError(.invalidArgument, message: "\(error)")
        }
        self.thread = thread
        self.input = input
        listening = Task { [shared] in
            await thread.run { Self.listen(output) { number in shared.state.withLock { $0.listeners[number] }?() } }
            await thread.close()
        }
    }

    /// Adds a listener, which must return quickly; it may also be called when its queue is empty.
    package func add(_ body: @escaping @Sendable () -> Void) -> Listener {
        shared.state.withLock { state in
            state.last += 1
            state.listeners[state.last] = body
            return state.last
        }
    }

    package func remove(_ listener: Listener) {
        shared.state.withLock { _ = $0.listeners.removeValue(forKey: listener) }
    }

    /// Makes a queue call a listener.
    func attach(_ listener: Listener, to queue: OpaquePointer) {
        // librdkafka copies the bytes. It advises a non-blocking pipe, so that its threads never wait for the reader; but a
        // number must not be lost when the pipe is full, and the thread that reads the pipe takes no lock of librdkafka.
        withUnsafeBytes(of: listener) { rd_kafka_queue_io_event_enable(queue, input, $0.baseAddress, $0.count) }
    }

    /// Ends the thread; must be called after every attached queue was destroyed.
    package func close() async {
        withUnsafeBytes(of: 0 as Listener) { bytes in
            var written = 0
            repeat { written = write(input, bytes.baseAddress, bytes.count) } while written < 0 && errno == EINTR
            precondition(written == bytes.count, "a pipe with a reader can be written to")
        }
        await listening.value
        closeDescriptor(input)
    }

    /// Calls a body with every number read from a pipe, until 0.
    private static func listen(_ output: Int32, _ body: (Listener) -> Void) {
        defer { closeDescriptor(output) }
        let size = MemoryLayout<Listener>.size
        var numbers = [Listener](repeating: 0, count: 512)
        while true {
            // Writes shorter than PIPE_BUF are atomic, so whole numbers are read.
            let count = numbers.withUnsafeMutableBytes { read(output, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            precondition(count > 0 && count % size == 0, "a pipe with a writer can be read from")
            for number in numbers[..<(count / size)] {
                if number == 0 { return }
                body(number)
            }
        }
    }
}

/// Closes a descriptor, outside of the class, whose own `close()` hides the system's; an error cannot be handled.
private func closeDescriptor(_ descriptor: Int32) { _ = close(descriptor) }

import CSignalPipe
import Glibc

/// A signal by which a process is asked to end.
package enum TerminationSignal: Sendable, Hashable, CaseIterable {
    /// `SIGINT`: control-C.
    case interrupt

    /// `SIGTERM`: from a supervisor.
    case terminate

    /// The system's number.
    package var number: Int32 {
        switch self {
        case .interrupt: SIGINT
        case .terminate: SIGTERM
        }
    }

    /// The system's name.
    package var name: String {
        switch self {
        case .interrupt: "SIGINT"
        case .terminate: "SIGTERM"
        }
    }
}

/// Why the signals could not be taken over.
package struct ProcessSignalFault: Error, Sendable, Hashable {
    /// The system's error number; `EBUSY` where the process has taken them over already.
    package let code: Int32
}

/// The signals that end the process, taken over from the system and read by a thread of their own.
///
/// Once for a process. `SIGPIPE` is ignored from then on: a peer that has gone is an error of the write.
package struct ProcessSignals: ~Copyable {
    /// Where signals that have come can be read, one byte each.
    ///
    /// Open as long as the process: signals may come until then.
    private let descriptor: Int32

    /// Takes the signals over; what comes before `listen` waits for it, so that nothing is lost and nothing ends early.
    ///
    /// - Throws: `ProcessSignalFault` where the system refuses.
    package init() throws(ProcessSignalFault) {
        let numbers = TerminationSignal.allCases.map(\.number)
        descriptor = weir_signal_pipe_open(numbers, Int32(numbers.count))
        guard descriptor >= 0 else { throw ProcessSignalFault(code: errno) }
        signal(SIGPIPE, SIG_IGN)
    }

    /// Starts the thread: the first signal calls the handler, a second ends the process at once.
    ///
    /// The second's message goes to standard error, and the process's code is 128 + its number. The handler runs on that
    /// thread and must return, mostly after `ServiceGroup.shutDown`.
    ///
    /// - Throws: `ProcessSignalFault` where the system has no thread.
    package consuming func listen(
        _ onFirst: @escaping @Sendable (TerminationSignal) -> Void
    ) throws(ProcessSignalFault) {
        // The thread takes over this reference.
        let listener = Unmanaged.passRetained(Listener(descriptor: descriptor, onFirst: onFirst))
        var thread = pthread_t()
        let code = pthread_create(&thread, nil, { $0.flatMap { Listener.run($0) } }, listener.toOpaque())
        guard code == 0 else {
            listener.release()
            throw ProcessSignalFault(code: code)
        }
    }
}

/// What the thread does.
private final class Listener: Sendable {
    private let descriptor: Int32
    private let onFirst: @Sendable (TerminationSignal) -> Void

    init(descriptor: Int32, onFirst: @escaping @Sendable (TerminationSignal) -> Void) {
        self.descriptor = descriptor
        self.onFirst = onFirst
    }

    static func run(_ pointer: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
        // Invariant: the pointer is the reference that `listen` retained for this thread alone.
        let listener = Unmanaged<Listener>.fromOpaque(pointer).takeRetainedValue()
        listener.onFirst(listener.next())
        let second = listener.next()
        let message = Array("a second signal, \(second.name): ending at once, whatever is in progress\n".utf8)
        // Not through the log, whose queue may be what is stuck. If it cannot be written, nobody is there to be told.
        _ = message.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
        _exit(128 + second.number)
    }

    /// Blocks until a signal comes.
    private func next() -> TerminationSignal {
        while true {
            var byte: UInt8 = 0
            let count = read(descriptor, &byte, 1)
            if count == 1, let signal = TerminationSignal.allCases.first(where: { $0.number == Int32(byte) }) {
                return signal
            }
            precondition(count == 1 || errno == EINTR, "somebody closed the pipe of the signals")
        }
    }
}

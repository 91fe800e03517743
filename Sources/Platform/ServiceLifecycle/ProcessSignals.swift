import CSignalPipe
import Glibc
import ThreadExecutor

/// A signal that asks the process to stop.
package enum TerminationSignal: Sendable, Hashable, CaseIterable {
    /// `SIGINT`: Control-C.
    case interrupt

    /// `SIGTERM`: from the process manager.
    case terminate

    package var number: Int32 {
        switch self {
        case .interrupt: SIGINT
        case .terminate: SIGTERM
        }
    }

    package var name: String {
        switch self {
        case .interrupt: "SIGINT"
        case .terminate: "SIGTERM"
        }
    }
}

/// Why the signal handlers could not be installed.
package struct ProcessSignalFault: Error, Sendable, Hashable {
    /// `errno`; `EBUSY` if the process has installed them before.
    package let code: Int32
}

/// Handles the signals that stop the process, and `SIGHUP`, on a thread of its own; once for each process.
///
/// It also ignores `SIGPIPE`, so that writing to a closed connection fails with an error.
package struct ProcessSignals: ~Copyable {
    /// The pipe that the signal handler writes to, one byte for each signal; open until the process ends.
    private let descriptor: Int32

    /// Installs the handlers.
    ///
    /// Signals before `listen` are kept for it.
    ///
    /// - Parameter handlesHangup: whether `SIGHUP` is handled; else it ends the process.
    package init(handlesHangup: Bool = false) throws(ProcessSignalFault) {
        let numbers = TerminationSignal.allCases.map(\.number) + (handlesHangup ? [SIGHUP] : [])
        descriptor = weir_signal_pipe_open(numbers, Int32(numbers.count))
        guard descriptor >= 0 else { throw ProcessSignalFault(code: errno) }
        signal(SIGPIPE, SIG_IGN)
    }

    /// Starts the thread.
    ///
    /// `SIGHUP` calls `onHangup` on it, which must return; the process continues. The first other signal calls `onFirst` on it, which must return; usually it calls `ServiceGroup.shutDown`. The
    /// second signal writes a message to standard error and exits with code 128 + its number.
    package consuming func listen(
        _ onFirst: @escaping @Sendable (TerminationSignal) -> Void, onHangup: @escaping @Sendable () -> Void = {}
    ) throws(ProcessSignalFault) {
        let descriptor = descriptor
        let code = startDetachedThread(stackSize: 1 << 20) {
            onFirst(Self.next(descriptor, onHangup))
            let second = Self.next(descriptor, onHangup)
            let message = Array("a second signal, \(second.name): exiting at once without stopping the services\n".utf8)
            // Not through the log, whose queue may be stuck. An error of this write cannot be reported.
            _ = message.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
            _exit(128 + second.number)
        }
        guard code == 0 else { throw ProcessSignalFault(code: code) }
    }

    /// Blocks until the next signal that stops the process.
    private static func next(_ descriptor: Int32, _ onHangup: () -> Void) -> TerminationSignal {
        while true {
            var byte: UInt8 = 0
            let count = read(descriptor, &byte, 1)
            if count == 1, Int32(byte) == SIGHUP {
                onHangup()
                continue
            }
            if count == 1, let signal = TerminationSignal.allCases.first(where: { $0.number == Int32(byte) }) {
                return signal
            }
            precondition(count == 1 || errno == EINTR, "the pipe of the signals was closed")
        }
    }
}

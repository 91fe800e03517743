import Foundation
import Synchronization

/// Names the input under which the process died: a trap leaves no other trace of it.
///
/// One run at a time has a report; others wait for it.
struct TrapReport: ~Copyable {
    private static let turn = Mutex(())

    /// What the signal handler reads; allocated once, never freed.
    fileprivate struct Memory: @unchecked Sendable {
        // Unchecked: written by the run that has its turn, read by the handler on the same thread, when that has trapped.
        let title: UnsafeMutablePointer<UInt8>
        let bytes: UnsafeMutablePointer<UInt8>
        /// Title length, case number, byte count.
        let numbers: UnsafeMutablePointer<Int>

        static let titleRoom = 256
        static let bytesRoom = 1 << 20

        init() {
            title = .allocate(capacity: Self.titleRoom)
            bytes = .allocate(capacity: Self.bytesRoom)
            numbers = .allocate(capacity: 3)
            numbers.initialize(repeating: 0, count: 3)
        }
    }

    fileprivate static let memory = Memory()
    /// Traps of Swift (SIGILL, SIGTRAP), of memory (SIGSEGV, SIGBUS), and of C (SIGABRT).
    private static let signals = [SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGABRT]

    /// Runs something that notes its inputs.
    static func during<Result>(_ title: String, _ body: (borrowing TrapReport) throws -> Result) rethrows -> Result {
        try turn.withLock { _ in
            let memory = memory
            let text = Array(title.utf8.prefix(Memory.titleRoom))
            memory.title.update(from: text, count: text.count)
            memory.numbers[0] = text.count
            let previous = signals.map { number in
                var action = sigaction()
                var before = sigaction()
                action.__sigaction_handler.sa_handler = reportTrap
                // After one report the signal does what it did before: most of all, end the process.
                action.sa_flags = Int32(bitPattern: UInt32(SA_RESETHAND))
                sigaction(number, &action, &before)
                return before
            }
            defer {
                for (number, before) in zip(signals, previous) {
                    var before = before
                    sigaction(number, &before, nil)
                }
            }
            return try body(TrapReport())
        }
    }

    /// Notes the input that comes next.
    func note(_ number: Int, _ input: [UInt8]) {
        let memory = Self.memory
        let kept = min(input.count, Memory.bytesRoom)
        memory.bytes.update(from: input, count: kept)
        memory.numbers[1] = number
        memory.numbers[2] = kept
    }
}

/// Writes to standard error; calls nothing that a signal handler may not.
private func reportTrap(_ signal: Int32) {
    let memory = TrapReport.memory
    _ = write(2, "\ntrapped: ", 10)
    _ = write(2, memory.title, memory.numbers[0])
    _ = write(2, ", case ", 7)
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
        var number = memory.numbers[1]
        var place = digits.count
        repeat {
            place -= 1
            digits[place] = UInt8(48 + number % 10)
            number /= 10
        } while number > 0
        _ = write(2, digits.baseAddress! + place, digits.count - place)
    }
    _ = write(2, ", bytes: ", 9)
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 2) { pair in
        for index in 0..<memory.numbers[2] {
            pair[0] = hexadecimal(memory.bytes[index] >> 4)
            pair[1] = hexadecimal(memory.bytes[index] & 15)
            _ = write(2, pair.baseAddress!, 2)
        }
    }
    _ = write(2, "\n", 1)
}

private func hexadecimal(_ half: UInt8) -> UInt8 { half < 10 ? 48 + half : 87 + half }

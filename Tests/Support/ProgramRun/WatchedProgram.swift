import Foundation
import ServerShell

/// A program that is watched, stopped or killed while it runs.
///
/// It is killed with its last reference.
package final class WatchedProgram: Sendable {
    private let process: Process
    private let output: FileHandle
    private let ended: AsyncStream<Int32>

    package convenience init(
        _ arguments: [String], of program: TestedProgram, in folder: TestFolder, _ environment: [String: String] = [:]
    ) throws {
        try self.init(try program.executable(), arguments, in: folder, environment)
    }

    package init(
        _ program: URL, _ arguments: [String], in folder: TestFolder, _ environment: [String: String] = [:]
    ) throws {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.currentDirectoryURL = URL(filePath: folder.path)
        process.environment = TestedProgram.environment.merging(environment) { $1 }
        let (ended, continuation) = AsyncStream.makeStream(of: Int32.self)
        process.terminationHandler = { process in
            continuation.yield(process.terminationStatus)
            continuation.finish()
        }
        output = try ProcessStart.runWithErrors(process, withOutput: true)
        self.process = process
        self.ended = ended
    }

    deinit { kill() }

    /// Sends SIGKILL, as a user or the system ends a program at any statement.
    package func kill() { if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) } }

    /// Waits for lines of its output or its errors; `false` if the process ends without them.
    ///
    /// - Parameter count: for how many.
    package func line(count: Int = 1, _ isWanted: @escaping @Sendable (String) -> Bool) async -> Bool {
        await withCheckedContinuation { found in
            let thread = Thread { [output] in
                var line: [UInt8] = []
                var missing = count
                while let byte = output.readData(ofLength: 1).first {
                    if byte != UInt8(ascii: "\n") {
                        line.append(byte)
                        continue
                    }
                    if isWanted(String(decoding: line, as: UTF8.self)) { missing -= 1 }
                    if missing == 0 { return found.resume(returning: true) }
                    line = []
                }
                found.resume(returning: false)
            }
            thread.start()
        }
    }

    /// Sends SIGTERM; the exit code.
    package func stop() async -> Int32 {
        Foundation.kill(process.processIdentifier, SIGTERM)
        return await exit()
    }

    /// Waits for the end; the exit code, or the signal.
    package func exit() async -> Int32 { await ended.first { _ in true } ?? -1 }
}

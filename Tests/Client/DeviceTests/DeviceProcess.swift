import Foundation
import ProgramRun
import ServerShell

/// A command of `weir-device` that is watched or killed while it runs.
final class DeviceProcess: Sendable {
    private let process: Process
    private let output: FileHandle
    private let ended: AsyncStream<Int32>

    init(_ arguments: [String], in folder: TestFolder, file: String, _ environment: [String: String]) throws {
        let process = Process()
        process.executableURL = try TestedProgram.device.executable()
        process.arguments = arguments + ["--file", file]
        process.currentDirectoryURL = URL(filePath: folder.path)
        process.environment = TestedProgram.environment.merging(environment) { $1 }
        let pipe = Pipe()
        (process.standardOutput, process.standardError) = (pipe, pipe)
        let (ended, continuation) = AsyncStream.makeStream(of: Int32.self)
        process.terminationHandler = { process in
            continuation.yield(process.terminationStatus)
            continuation.finish()
        }
        try ProcessStart.run(process)
        output = pipe.fileHandleForReading
        self.process = process
        self.ended = ended
    }

    deinit { kill() }

    /// As a user or the system ends a program, at any statement.
    func kill() { if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) } }

    /// Waits for a line of its output or its errors; `false` if the process ends without it.
    func line(_ isWanted: @escaping @Sendable (String) -> Bool) async -> Bool {
        await withCheckedContinuation { found in
            let thread = Thread { [output] in
                var line: [UInt8] = []
                while let byte = output.readData(ofLength: 1).first {
                    if byte != UInt8(ascii: "\n") {
                        line.append(byte)
                        continue
                    }
                    if isWanted(String(decoding: line, as: UTF8.self)) { return found.resume(returning: true) }
                    line = []
                }
                found.resume(returning: false)
            }
            thread.start()
        }
    }

    /// Sends SIGTERM; the exit code.
    func stop() async -> Int32 {
        Foundation.kill(process.processIdentifier, SIGTERM)
        return await exit()
    }

    /// Waits for the end; the exit code, or the signal.
    func exit() async -> Int32 { await ended.first { _ in true } ?? -1 }
}

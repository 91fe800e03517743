import Foundation
import ProgramRun
import ServerShell

/// `weir-device watch`, whose lines are read while it runs.
final class WatchProcess: Sendable {
    private let process: Process
    private let output: FileHandle
    private let ended: AsyncStream<Int32>

    init(in folder: TestFolder, file: String, _ environment: [String: String]) throws {
        let process = Process()
        process.executableURL = try TestedProgram.device.executable()
        process.arguments = ["watch", "--file", file]
        process.currentDirectoryURL = URL(filePath: folder.path)
        process.environment = TestedProgram.environment.merging(environment) { $1 }
        process.standardError = FileHandle.nullDevice
        let pipe = Pipe()
        process.standardOutput = pipe
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

    deinit { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

    /// Waits for a line; `false` if the process ends without it.
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
        kill(process.processIdentifier, SIGTERM)
        return await ended.first { _ in true } ?? -1
    }
}

import Foundation
import ProgramRun
import ServerShell

/// A run of a program whose output and errors are a terminal.
struct TerminalRun: Sendable {
    /// What the program wrote, as the terminal has got it.
    let text: String
    let code: Int32

    /// Runs a program on a new pseudo-terminal, until it ends.
    static func run(
        _ arguments: [String], of program: TestedProgram, in folder: TestFolder, columns: Int, rows: Int
    ) async throws -> TerminalRun {
        let process = Process()
        process.executableURL = try program.executable()
        process.arguments = arguments
        process.currentDirectoryURL = URL(filePath: folder.path)
        process.environment = TestedProgram.environment
        process.standardInput = FileHandle.nullDevice
        let (ended, continuation) = AsyncStream.makeStream(of: Int32.self)
        process.terminationHandler = { process in
            continuation.yield(process.terminationStatus)
            continuation.finish()
        }
        let (terminal, end) = try open(columns: columns, rows: rows)
        process.standardOutput = end
        process.standardError = end
        try ProcessStart.run(process)
        try end.close()
        let identifier = process.processIdentifier
        return try await withTaskCancellationHandler {
            let text = await read(terminal)
            guard let code = await ended.first(where: { _ in true }) else { throw CancellationError() }
            return TerminalRun(text: text, code: code)
        } onCancel: {
            _ = kill(identifier, SIGKILL)
        }
    }

    /// The side of the terminal and that of the program, which other processes do not inherit.
    private static func open(columns: Int, rows: Int) throws -> (FileHandle, FileHandle) {
        var (terminal, end): (Int32, Int32) = (-1, -1)
        var size = winsize()
        (size.ws_col, size.ws_row) = (UInt16(columns), UInt16(rows))
        guard openpty(&terminal, &end, nil, nil, &size) == 0, fcntl(terminal, F_SETFD, FD_CLOEXEC) == 0,
            fcntl(end, F_SETFD, FD_CLOEXEC) == 0
        else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EMFILE) }
        return (
            FileHandle(fileDescriptor: terminal, closeOnDealloc: true),
            FileHandle(fileDescriptor: end, closeOnDealloc: true)
        )
    }

    /// Reads until no process has the program's side any more.
    private static func read(_ terminal: FileHandle) async -> String {
        await withCheckedContinuation { done in
            let thread = Thread {
                var bytes: [UInt8] = []
                var piece = [UInt8](repeating: 0, count: 4096)
                while true {
                    let count = Foundation.read(terminal.fileDescriptor, &piece, piece.count)
                    if count > 0 {
                        bytes += piece[..<count]
                    } else if count == 0 || errno != EINTR {
                        // EIO is the end of a terminal.
                        return done.resume(returning: String(decoding: bytes, as: UTF8.self))
                    }
                }
            }
            thread.start()
        }
    }
}

import Foundation
import ServerShell

/// A run of the program that ends by itself: what it wrote, and its exit code.
package struct CommandRun: Sendable {
    /// Standard output.
    package let output: String
    /// Standard error.
    package let errors: String
    package let code: Int32

    /// Runs a program in a folder and waits for its end; a cancelled wait kills the program.
    package static func run(
        _ arguments: String..., of program: TestedProgram = .weir, in folder: TestFolder,
        environment: [String: String] = [:]
    ) async throws -> CommandRun {
        try await run(arguments, of: program, in: folder, environment: environment)
    }

    /// Runs a program in a folder and waits for its end; a cancelled wait kills the program.
    package static func run(
        _ arguments: [String], of program: TestedProgram = .weir, in folder: TestFolder,
        environment: [String: String] = [:]
    ) async throws -> CommandRun {
        // Files, not pipes: a program that writes more than a pipe holds would wait for a reader.
        let output = try Capture(in: folder)
        let errors = try Capture(in: folder)
        let process = Process()
        process.executableURL = try program.executable()
        process.arguments = arguments
        process.currentDirectoryURL = URL(fileURLWithPath: folder.path)
        process.environment = TestedProgram.environment.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output.handle
        process.standardError = errors.handle
        let (ended, continuation) = AsyncStream.makeStream(of: Int32.self)
        process.terminationHandler = { process in
            continuation.yield(process.terminationStatus)
            continuation.finish()
        }
        try ProcessStart.run(process)
        let identifier = process.processIdentifier
        let code = await withTaskCancellationHandler {
            await ended.first { _ in true }
        } onCancel: {
            _ = kill(identifier, SIGKILL)
        }
        guard let code else { throw CancellationError() }
        return CommandRun(output: try output.text(), errors: try errors.text(), code: code)
    }

    /// The lines of standard error.
    package var errorLines: [String] { errors.split(separator: "\n").map(String.init) }
}

/// A file that a program writes to.
private struct Capture {
    let handle: FileHandle
    private let url: URL

    init(in folder: TestFolder) throws {
        url = URL(fileURLWithPath: folder.path + "/" + UUID().uuidString)
        try Data().write(to: url)
        handle = try FileHandle(forWritingTo: url)
    }

    /// Everything that was written.
    func text() throws -> String {
        try handle.close()
        return String(decoding: try Data(contentsOf: url), as: UTF8.self)
    }
}

extension TestFolder {
    /// Writes a file into the folder; its path.
    @discardableResult
    package func write(_ text: String, to name: String) throws -> String {
        try text.write(toFile: path + "/" + name, atomically: true, encoding: .utf8)
        return path + "/" + name
    }
}

import Foundation
import ServerShell

/// A finished run of a program: standard output, standard error and exit code.
package struct CommandRun: Sendable {
    package let output: String
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
        try await start(
            try program.executable(), arguments, in: folder,
            environment: TestedProgram.environment.merging(environment) { $1 })
    }

    /// Whether a program is on the path.
    package static func isInstalled(_ program: String) -> Bool {
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
            .contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(program)") }
    }

    /// Runs a program of the system, found on the path, and waits for its end.
    ///
    /// - Parameter input: a file in the folder, for its standard input.
    package static func tool(
        _ arguments: [String], input: String? = nil, in folder: TestFolder
    ) async throws -> CommandRun {
        try await start(
            URL(filePath: "/usr/bin/env"), arguments, input: input, in: folder,
            environment: ProcessInfo.processInfo.environment)
    }

    private static func start(
        _ program: URL, _ arguments: [String], input: String? = nil, in folder: TestFolder,
        environment: [String: String]
    ) async throws -> CommandRun {
        // Files, not pipes: a program that writes more than a pipe holds would wait for a reader.
        let output = try Capture(in: folder)
        let errors = try Capture(in: folder)
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.currentDirectoryURL = URL(filePath: folder.path)
        process.environment = environment
        process.standardInput =
            try input.map { try FileHandle(forReadingFrom: URL(filePath: folder.path + "/" + $0)) }
            ?? FileHandle.nullDevice
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

import Foundation

/// A program of Weir beside the tests' own.
package enum TestedProgram: String, Sendable {
    case weir
    case bench = "weir-bench"
    case chaos = "weir-chaos"
    case demo = "weir-demo"
    case device = "weir-device"
    case simulate = "weir-simulate"

    /// The executable, in the folder of the tests or in one above it.
    package func executable() throws -> URL {
        var folder = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        for _ in 0..<4 {
            let candidate = folder.appendingPathComponent(rawValue)
            if FileManager.default.isExecutableFile(atPath: candidate.path) { return candidate }
            folder.deleteLastPathComponent()
        }
        throw StartFailure(description: "there is no \(rawValue) beside \(CommandLine.arguments[0])")
    }

    /// The environment of the tests without `WEIR_` variables, which would be settings.
    ///
    /// The operations port is any free one: processes that run side by side cannot share the default.
    package static var environment: [String: String] {
        var variables = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("WEIR_") }
        variables["WEIR_OPERATIONS_ADDRESS"] = "127.0.0.1:0"
        return variables
    }
}

/// Why a process did not start.
package struct StartFailure: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) { self.description = description }
}

/// The codes with which the program ends.
package enum ExitCode: Int32, Sendable, Hashable {
    case success = 0
    /// The command failed, or what it checked has faults.
    case failure = 1
    /// The check could not be made.
    case undecided = 2
    /// The call is wrong: an unknown command or option, a missing argument (`EX_USAGE` of sysexits).
    case usage = 64
}

/// What a program does for its arguments.
package enum CommandOutcome<Action: Sendable>: Sendable {
    case invoke(CommandInvocation<Action>)
    /// Print help or the version to standard output and end with `ExitCode.success`.
    case print(String)
    /// Print this to standard error and end with `ExitCode.usage`.
    case refuse(String)
}

/// A call of a command.
package struct CommandInvocation<Action: Sendable>: Sendable {
    package let action: Action
    /// In the order given, each at most once.
    package let options: [CommandOptionValue]
    /// The positional arguments, as many as the command declares.
    package let arguments: [String]

    package func option(_ name: String) -> CommandOptionValue? {
        options.first { $0.name == name }
    }

    /// The number that an option gives; `nil` where it is not given.
    ///
    /// - Throws: `UsageError` for what is no number of the range.
    package func number<Number: FixedWidthInteger>(
        _ name: String, in range: ClosedRange<Number>
    ) throws(UsageError) -> Number? {
        guard let text = option(name)?.value else { return nil }
        guard let value = Number(text), range.contains(value) else {
            throw UsageError("--\(name) is a number from \(range.lowerBound) to \(range.upperBound), not \(text)")
        }
        return value
    }
}

package struct CommandOptionValue: Sendable, Hashable {
    /// The declared name, without hyphens.
    package let name: String
    /// `nil` where none was given and none is needed.
    package let value: String?

    package init(_ name: String, _ value: String?) {
        self.name = name
        self.value = value
    }
}

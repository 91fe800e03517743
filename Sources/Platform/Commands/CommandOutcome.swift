/// The codes with which the program ends.
package enum ExitCode: Int32, Sendable, Hashable {
    /// It did what it was asked to.
    case success = 0

    /// It tried and failed, or what it checked has faults.
    case failure = 1

    /// It could not find out what it was asked.
    case undecided = 2

    /// It was called wrongly: an unknown command or option, a missing argument (`EX_USAGE` of sysexits).
    case usage = 64
}

/// What a program should do with the arguments it was given.
package enum CommandOutcome<Action: Sendable>: Sendable {
    /// Carry out a command.
    case invoke(CommandInvocation<Action>)

    /// Print this to standard output and end with `ExitCode.success`: help or the version was asked for.
    case print(String)

    /// Print this to standard error and end with `ExitCode.usage`.
    case refuse(String)
}

/// A command as it was called.
package struct CommandInvocation<Action: Sendable>: Sendable {
    /// What to do.
    package let action: Action

    /// The options given, in that order, each at most once.
    package let options: [CommandOptionValue]

    /// The positional arguments, as many as the command declares.
    package let arguments: [String]

    /// The option of that name, if it was given.
    package func option(_ name: String) -> CommandOptionValue? {
        options.first { $0.name == name }
    }
}

/// An option as it was given.
package struct CommandOptionValue: Sendable, Hashable {
    /// The declared name, without hyphens.
    package let name: String

    /// The value; `nil` where none was given and none is needed.
    package let value: String?

    /// Makes an option as if it had been given.
    package init(_ name: String, _ value: String?) {
        self.name = name
        self.value = value
    }
}

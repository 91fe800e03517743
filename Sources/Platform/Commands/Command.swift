/// A command of the program, or a group of further commands.
///
/// `Action` is what a program runs for the command, an enum to switch over or a closure:
///
///     let weir = Command("weir", "An offline-first sync backend.", subcommands: [
///         Command("run", "Run every role in this process.", .run, options: schema.options),
///         Command("schema", "Work with schema files.", subcommands: [
///             Command("check", "Check a schema file.", .checkSchema, arguments: [.one("FILE", "The schema file.")])
///         ]),
///     ])
package struct Command<Action: Sendable>: Sendable {
    enum Content: Sendable {
        case action(Action, arguments: [CommandArgument], options: [CommandOption])
        case group([Command])
    }

    /// The word that calls it; for the outermost command, the program's name.
    package let name: String
    /// One sentence on what it does.
    package let summary: String
    /// Shown in the command's own help; may be empty.
    package let discussion: String

    let content: Content

    /// Declares a command.
    ///
    /// Only the last argument may be optional or repeat; options and arguments have different names. A breach traps.
    package init(
        _ name: String, _ summary: String, _ action: Action, arguments: [CommandArgument] = [],
        options: [CommandOption] = [], discussion: String = ""
    ) {
        precondition(
            arguments.dropLast().allSatisfy { $0.count == .one }, "only the last argument may be optional or repeat")
        precondition(Set(options.map(\.name)).count == options.count, "the options of \(name) have different names")
        precondition(!options.contains { $0.name == "help" }, "every command has --help by itself")
        self.name = name
        self.summary = summary
        self.discussion = discussion
        content = .action(action, arguments: arguments, options: options)
    }

    /// Declares a group of commands.
    ///
    /// They have different names, none of them `help`; a breach traps.
    package init(_ name: String, _ summary: String, subcommands: [Command], discussion: String = "") {
        precondition(!subcommands.isEmpty, "the group \(name) has commands")
        precondition(
            Set(subcommands.map(\.name) + ["help"]).count == subcommands.count + 1,
            "the commands of \(name) have different names, none is help")
        self.name = name
        self.summary = summary
        self.discussion = discussion
        content = .group(subcommands)
    }

    var subcommands: [Command] {
        if case .group(let commands) = content { commands } else { [] }
    }
}

/// A positional argument of a command.
package struct CommandArgument: Sendable {
    /// How often an argument is given.
    package enum Count: Sendable, Hashable {
        case one
        /// Once or not at all.
        case optional
        /// Once or more.
        case many
    }

    /// The name shown in help, in capitals: `FILE`.
    package let name: String
    package let help: String
    package let count: Count

    package static func one(_ name: String, _ help: String) -> CommandArgument {
        CommandArgument(name: name, help: help, count: .one)
    }

    package static func optional(_ name: String, _ help: String) -> CommandArgument {
        CommandArgument(name: name, help: help, count: .optional)
    }

    package static func many(_ name: String, _ help: String) -> CommandArgument {
        CommandArgument(name: name, help: help, count: .many)
    }

    /// The argument as usage lines show it.
    var usage: String {
        switch count {
        case .one: name
        case .optional: "[\(name)]"
        case .many: "\(name)..."
        }
    }
}

/// An option of a command, written `--name`.
package struct CommandOption: Sendable {
    /// The text is the placeholder shown in help.
    package enum Value: Sendable, Hashable {
        /// `--name` alone.
        case none
        /// `--name value` or `--name=value`.
        case required(String)
        /// `--name` or `--name=value`.
        case optional(String)
    }

    /// The name without the hyphens.
    package let name: String
    package let value: Value
    /// One sentence on what it does.
    package let help: String
    /// The heading under which help lists it; empty for the general options, which come first.
    package let section: String

    package init(_ name: String, _ value: Value, _ help: String, section: String = "") {
        precondition(!name.isEmpty && !name.utf8.starts(with: "-".utf8), "an option's name goes without hyphens")
        self.name = name
        self.value = value
        self.help = help
        self.section = section
    }

    /// The option as help shows it.
    var usage: String {
        switch value {
        case .none: "--\(name)"
        case .required(let placeholder): "--\(name) \(placeholder)"
        case .optional(let placeholder): "--\(name)[=\(placeholder)]"
        }
    }
}

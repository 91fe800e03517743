extension Command {
    /// Parses a call of this outermost command; the arguments exclude the program's name.
    ///
    /// `--help` and `-h` work after every command, `help X Y` shows the help of `X Y`, `--version` the version. Options
    /// and positional arguments may be mixed; `--` ends the options. An option is given at most once.
    package func parse(_ arguments: [String], version: String? = nil) -> CommandOutcome<Action> {
        if let version, arguments.count == 1, arguments[0].isSame(as: "--version") {
            return .print("\(name) \(version)\n")
        }
        do {
            if let first = arguments.first, first.isSame(as: "help") {
                return .print(try help(for: arguments.dropFirst()))
            }
            return try parse(arguments[...], path: [name])
        } catch {
            return .refuse(error.message)
        }
    }

    private func parse(_ arguments: ArraySlice<String>, path: [String]) throws(UsageFault) -> CommandOutcome<Action> {
        switch content {
        case .group(let commands):
            guard let word = arguments.first else {
                throw UsageFault("a command is missing\n\n" + help(path: path))
            }
            if word.isHelpFlag { return .print(help(path: path)) }
            let command = try Self.find(word, in: commands, path: path)
            return try command.parse(arguments.dropFirst(), path: path + [command.name])
        case .action(let action, let declared, let options):
            var reader = ArgumentReader(arguments: arguments, options: options, path: path)
            guard try reader.readAll() else { return .print(help(path: path)) }
            try reader.check(against: declared)
            return .invoke(
                CommandInvocation(action: action, options: reader.values, arguments: reader.positional))
        }
    }

    private func help(for words: ArraySlice<String>) throws(UsageFault) -> String {
        var command = self
        var path = [name]
        for word in words where !word.isHelpFlag {
            command = try Self.find(word, in: command.subcommands, path: path)
            path.append(command.name)
        }
        return command.help(path: path)
    }

    private static func find(_ word: String, in commands: [Command], path: [String]) throws(UsageFault) -> Command {
        if let command = commands.first(where: { $0.name.isSame(as: word) }) { return command }
        guard !word.utf8.starts(with: "-".utf8) else {
            throw UsageFault("the option \(word) must come after a command", path: path)
        }
        let nearest = NearestName.find(word, among: commands.map(\.name))
        throw UsageFault("unknown command \"\(word)\"", nearest: nearest.map { "\"\($0)\"" }, path: path)
    }
}

private struct UsageFault: Error {
    let message: String

    init(_ message: String) {
        self.message = "Error: \(message)"
    }

    init(_ message: String, nearest: String? = nil, path: [String]) {
        let suggestion = nearest.map { "; did you mean \($0)?" } ?? ""
        self.init("\(message)\(suggestion)\nSee \"\(path.joined(separator: " ")) --help\".\n")
    }
}

/// Parses the arguments of one command.
private struct ArgumentReader {
    var arguments: ArraySlice<String>
    let options: [CommandOption]
    let path: [String]
    var values: [CommandOptionValue] = []
    var positional: [String] = []

    init(arguments: ArraySlice<String>, options: [CommandOption], path: [String]) {
        self.arguments = arguments
        self.options = options
        self.path = path
    }

    /// Returns `false` as soon as it reads an option for help.
    mutating func readAll() throws(UsageFault) -> Bool {
        while let argument = arguments.popFirst() {
            if argument.isHelpFlag { return false }
            if argument.isSame(as: "--") {
                positional += arguments
                arguments = []
            } else if argument.utf8.starts(with: "--".utf8) {
                try readOption(argument.dropFirst(2))
            } else if argument.utf8.starts(with: "-".utf8), argument.utf8.count > 1 {
                throw UsageFault("unknown option \(argument)", path: path)
            } else {
                positional.append(argument)
            }
        }
        return true
    }

    private mutating func readOption(_ text: Substring) throws(UsageFault) {
        let equals = text.utf8.firstIndex(of: UInt8(ascii: "="))
        let name = String(text[..<(equals ?? text.endIndex)])
        let inline = equals.map { String(text[text.utf8.index(after: $0)...]) }
        guard let option = options.first(where: { $0.name.isSame(as: name) }) else {
            let nearest = NearestName.find(name, among: options.map(\.name) + ["help"])
            throw UsageFault("unknown option --\(name)", nearest: nearest.map { "--\($0)" }, path: path)
        }
        guard !values.contains(where: { $0.name == option.name }) else {
            throw UsageFault("the option --\(option.name) is given twice", path: path)
        }
        switch option.value {
        case .none:
            guard inline == nil else { throw UsageFault("the option --\(option.name) takes no value", path: path) }
            values.append(CommandOptionValue(option.name, nil))
        case .optional:
            values.append(CommandOptionValue(option.name, inline))
        case .required(let placeholder):
            // A next argument that looks like an option means that the value is missing; `--name=--value` sets such a value.
            let next = arguments.first.flatMap { $0.utf8.starts(with: "--".utf8) ? nil : $0 }
            guard let value = inline ?? next else {
                throw UsageFault(
                    "the option --\(option.name) needs a value: --\(option.name) \(placeholder)", path: path)
            }
            if inline == nil { arguments.removeFirst() }
            values.append(CommandOptionValue(option.name, value))
        }
    }

    func check(against declared: [CommandArgument]) throws(UsageFault) {
        let required = declared.count { $0.count != .optional }
        if positional.count < required {
            throw UsageFault("the argument \(declared[positional.count].name) is missing", path: path)
        }
        if declared.last?.count != .many, positional.count > declared.count {
            throw UsageFault("unexpected argument \"\(positional[declared.count])\"", path: path)
        }
    }
}

extension String {
    /// Compares bytes: canonically equivalent spellings are different words.
    fileprivate func isSame(as other: String) -> Bool {
        utf8.elementsEqual(other.utf8)
    }

    fileprivate var isHelpFlag: Bool {
        isSame(as: "--help") || isSame(as: "-h")
    }
}

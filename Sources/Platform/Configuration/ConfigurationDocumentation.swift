import Commands

extension ConfigurationSchema {
    /// The flags as options of a command: `--config` and the short ones first, then every key under its scope.
    package var options: [CommandOption] { options(of: Set(keys.indices)) }

    /// The flags of the settings that a command reads: `body` reads them from empty sources.
    package func options(readBy body: (ConfigurationReader) -> Void) -> [CommandOption] {
        let reader = ConfigurationReader(self, ConfigurationSources())
        body(reader)
        return options(of: reader.keysRead)
    }

    private func options(of wanted: Set<Int>) -> [CommandOption] {
        let file = CommandOption(
            Self.fileKey, .required("PATH"), "The configuration file (\(variable(for: Self.fileKey))).")
        let short = keys.indices.filter(wanted.contains).compactMap { index in
            keys[index].shortFlag.map { flag in
                let declaration = keys[index].declaration
                return CommandOption(
                    flag, declaration.flagValue, "\(declaration.help) Short for --\(keys[index].name).")
            }
        }
        let long = sections.flatMap { section in
            section.keys.filter(wanted.contains).map { index in
                let (key, declaration) = (keys[index], keys[index].declaration)
                let heading = section.scope.isEmpty ? "" : "\(section.about) (\(section.scope))"
                guard declaration.isSecret else {
                    return CommandOption(key.name, declaration.flagValue, declaration.help, section: heading)
                }
                return CommandOption(
                    key.fileName, .required("PATH"), "A file whose first line is: \(declaration.documentation)",
                    section: heading)
            }
        }
        return [file] + short + long
    }

    /// The reference of every key, in Markdown; the same schema gives the same text.
    package func markdown() -> String {
        let prefix = variable(for: "")
        var text = """
            # Configuration

            A setting is taken from the first of these that has it: a flag, an environment variable, the configuration
            file, the default. A key `a.b-c` is

            - the flag `--a.b-c VALUE` or `--a.b-c=VALUE`;
            - the variable `\(prefix)A_B_C`;
            - in the file (YAML), `b-c` in the mapping `a`, or `a.b-c`.

            `--\(Self.fileKey) PATH` or `\(variable(for: Self.fileKey))` names the file. An unknown key is an error,
            in the file, among the flags and among the variables that begin with `\(prefix)`.

            A secret has no flag, since every user of the machine can read a command line; its companion `…-file` names a
            file whose first line is the secret.

            Different processes may share a file. Each opens the files of the secrets that it uses, and no others; of keys that
            it does not use it checks the name and the type of the value.

            `\(program) config` prints what is in force and where it comes from.

            """
        for section in sections {
            text += "\n## \(section.about)\n\n| Key | Value | Default | Meaning |\n|---|---|---|---|\n"
            for key in keys[section.keys] {
                let declaration = key.declaration
                let cells = [
                    key.names.map { "`\($0)`" }.joined(separator: ", ")
                        + (key.shortFlag.map { " (`--\($0)`)" } ?? ""),
                    declaration.expected, declaration.defaultCell, declaration.documentation,
                ]
                text += "| \(cells.map(Self.escape).joined(separator: " | ")) |\n"
            }
        }
        return text
    }

    private static func escape(_ cell: String) -> String {
        cell.replacing("|", with: "\\|")
    }
}

extension SettingDeclaration {
    fileprivate var flagValue: CommandOption.Value {
        isBoolean ? .optional(placeholder) : .required(placeholder)
    }

    fileprivate var help: String {
        switch `default` {
        case .value(let text) where !text.isEmpty: "\(documentation) Default: \(text)."
        case .value, .none: documentation
        case .required: "\(documentation) Required."
        }
    }

    fileprivate var defaultCell: String {
        switch `default` {
        case .value(let text): text.isEmpty ? "empty" : "`\(text)`"
        case .none: "none"
        case .required: "required"
        }
    }
}

extension Configuration {
    /// What is in force and where it comes from, as a configuration file would say it; secrets are masked.
    package func report() -> String {
        let lines = inForce.map { entry in
            switch entry.value {
            case .none: ("# \(entry.key):", "not set")
            case .some(let value) where entry.isSecret: ("# \(entry.key): \(value)", "\(entry.origin)")
            case .some(let value): ("\(entry.key): \(Self.quote(value))", "\(entry.origin)")
            }
        }
        let width = lines.map(\.0.count).filter { $0 <= 60 }.max() ?? 0
        return lines.map { setting, origin in
            setting + String(repeating: " ", count: max(0, width - setting.count)) + "  # \(origin)\n"
        }.joined()
    }

    /// A value as YAML takes it for that text: plain where nothing in it means anything, else in double quotes.
    private static func quote(_ value: String) -> String {
        let isPlain = value.utf8.allSatisfy {
            ($0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "z")) || ($0 >= UInt8(ascii: "A") && $0 <= UInt8(ascii: "Z"))
                || ($0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9")) || "./_+".utf8.contains($0)
        }
        let nulls = ["null", "Null", "NULL"]
        if isPlain, !value.isEmpty, !nulls.contains(value) { return value }
        return "\"" + value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
}

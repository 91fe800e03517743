extension Command {
    /// The help text of this command, called by these words: usage, what it does, commands, arguments, options.
    func help(path: [String]) -> String {
        var text = "Usage: \(usage(path: path))\n\n\(summary)\n"
        if !discussion.isEmpty { text += "\n\(discussion)\n" }
        switch content {
        case .group(let commands):
            text += HelpTable.render("Commands", commands.map { ($0.name, $0.summary) })
            text += "\nSee \"\(path[0]) help \((path.dropFirst() + ["COMMAND"]).joined(separator: " "))\" for more.\n"
        case .action(_, let arguments, let options):
            if !arguments.isEmpty {
                text += HelpTable.render("Arguments", arguments.map { ($0.name, $0.help) })
            }
            let general = options.filter(\.section.isEmpty).map { ($0.usage, $0.help) }
            text += HelpTable.render("Options", general + [("--help, -h", "Show this help.")])
            var sections: [String] = []
            for option in options where !option.section.isEmpty && !sections.contains(option.section) {
                sections.append(option.section)
            }
            for section in sections {
                text += HelpTable.render(section, options.filter { $0.section == section }.map { ($0.usage, $0.help) })
            }
        }
        return text
    }

    private func usage(path: [String]) -> String {
        let words =
            switch content {
            case .group: ["COMMAND"]
            case .action(_, let arguments, _): ["[OPTIONS]"] + arguments.map(\.usage)
            }
        return (path + words).joined(separator: " ")
    }
}

/// Two columns, wrapped to a fixed width so that the text is the same everywhere.
private enum HelpTable {
    static let width = 100
    /// A longer left column gets a line of its own.
    static let widestColumn = 30

    static func render(_ heading: String, _ rows: [(String, String)]) -> String {
        let column = rows.map(\.0.count).filter { $0 <= widestColumn }.max() ?? widestColumn
        let indent = String(repeating: " ", count: column + 4)
        var text = "\n\(heading):\n"
        for (left, right) in rows {
            let lines = wrap(right, width: width - column - 4)
            if left.count > column {
                text += "  \(left)\n\(indent)"
            } else {
                text += "  \(left)" + String(repeating: " ", count: column + 2 - left.count)
            }
            text += lines.joined(separator: "\n\(indent)") + "\n"
        }
        return text
    }

    private static func wrap(_ text: String, width: Int) -> [String] {
        var lines: [String] = []
        for word in text.split(separator: " ") {
            if let last = lines.last, last.count + 1 + word.count <= width {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines.isEmpty ? [""] : lines
    }
}

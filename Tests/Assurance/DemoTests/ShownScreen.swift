/// A terminal as a person sees it: what a program writes, with the control sequences of the demonstration carried out.
struct ShownScreen {
    let columns: Int
    let rows: Int
    /// All lines since the beginning, those that have scrolled away included.
    private(set) var lines = [""]
    /// How often the cursor was moved up.
    private(set) var redraws = 0
    /// Sequences that no terminal must know for this program.
    private(set) var unknown: [String] = []

    private var line = 0
    private var column = 0

    init(columns: Int, rows: Int) { (self.columns, self.rows) = (columns, rows) }

    /// Those that are not empty.
    var text: [String] { lines.filter { !$0.isEmpty } }

    mutating func write(_ text: String) {
        var rest = text.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            switch scalar {
            case "\r": column = 0
            case "\n": (line, column) = (line + 1, 0)
            case "\u{1B}":
                let sequence = rest.prefix { !("A"..."z" ~= $0) || $0 == "[" }
                rest = rest.dropFirst(sequence.count)
                control(String(sequence.dropFirst().map(Character.init)), rest.popFirst() ?? " ")
            default: put(Character(scalar))
            }
            while line >= lines.count { lines.append("") }
        }
    }

    private mutating func put(_ character: Character) {
        // Behind the last column the next line begins.
        if column == columns { (line, column) = (line + 1, 0) }
        while line >= lines.count { lines.append("") }
        var characters = Array(lines[line])
        while characters.count <= column { characters.append(" ") }
        characters[column] = character
        lines[line] = String(characters)
        column += 1
    }

    private mutating func control(_ parameters: String, _ end: Unicode.Scalar) {
        switch (end, parameters) {
        case ("A", _):
            // Not above the first line that is seen.
            line = max(lines.count - rows, line - (Int(parameters) ?? 1), 0)
            redraws += 1
        case ("J", ""):
            lines[line] = String(lines[line].prefix(column))
            lines.removeSubrange((line + 1)...)
        case ("m", _): break
        default: unknown.append("\(parameters)\(end)")
        }
    }
}

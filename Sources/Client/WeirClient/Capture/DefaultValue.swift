/// A column's DEFAULT clause.
enum DefaultValue {
    /// What is no name, be it written as one.
    private static let constants: Set<String> = [
        "null", "true", "false", "current_date", "current_time", "current_timestamp",
    ]
    private static let quotes: [Character: Character] = ["\"": "\"", "`": "`", "[": "]"]

    /// The clause as an expression.
    ///
    /// DEFAULT takes a name for a text, be it quoted as one or not, which is a column's name in an expression.
    ///
    /// - Parameter clause: as SQLite describes it, without parentheses around it.
    static func expression(of clause: String) -> String {
        guard let first = clause.first else { return clause }
        if let end = quotes[first] {
            let name = String(clause.dropFirst().dropLast())
            return literal(name.replacing("\(end)\(end)", with: "\(end)"))
        }
        let isName = !isDigit(first) && clause.allSatisfy { isLetter($0) || isDigit($0) || $0 == "_" || $0 == "$" }
        return isName && !constants.contains(foldedName(clause)) ? literal(clause) : clause
    }

    private static func isDigit(_ character: Character) -> Bool { ("0"..."9").contains(character) }

    /// For SQLite, what is not ASCII is a letter.
    private static func isLetter(_ character: Character) -> Bool { !character.isASCII || character.isLetter }
}

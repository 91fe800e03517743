/// The prepared statements of a session, by their text: those used longest ago are given up first.
struct StatementCache {
    private struct Entry {
        let name: String
        var lastUse: Int
    }

    /// The most statements between two uses of the session.
    private let maximumCount: Int
    private var entries: [String: Entry] = [:]
    private var nextNumber = 1
    private var use = 0

    init(maximumCount: Int) { self.maximumCount = maximumCount }

    /// The name of a statement that is prepared; `nil` where it is not.
    mutating func name(of text: String) -> String? {
        guard let index = entries.index(forKey: text) else { return nil }
        entries.values[index].lastUse = use
        return entries.values[index].name
    }

    /// A name that no statement of the session had.
    mutating func newName() -> String {
        defer { nextNumber += 1 }
        return "weir_\(nextNumber)"
    }

    mutating func insert(_ text: String, as name: String) { entries[text] = Entry(name: name, lastUse: use) }

    /// Begins another use of the session.
    ///
    /// - Returns: the names of statements that are given up; somewhat more than necessary, so that not every use gives some up.
    mutating func beginUse() -> [String] {
        use += 1
        guard entries.count > maximumCount else { return [] }
        let oldest = entries.sorted { $0.value.lastUse < $1.value.lastUse }
        let excess = oldest.prefix(entries.count - maximumCount * 7 / 8)
        for (text, _) in excess { entries[text] = nil }
        return excess.map(\.value.name)
    }
}

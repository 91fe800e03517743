extension PostgresResult {
    /// The elements of a `text[]` of one dimension without NULLs.
    ///
    /// - Throws: `PostgresError` where the value is anything else.
    package func texts(_ row: Int, _ column: Int) throws(PostgresError) -> [String] {
        let bytes = bytes(row, column)
        var place = 0
        func word() throws(PostgresError) -> Int {
            guard place + 4 <= bytes.count else { throw Self.noTexts }
            defer { place += 4 }
            return Int(bytes[place..<place + 4].reduce(0 as Int32) { $0 << 8 | Int32($1) })
        }
        let dimensions = try word()
        let hasNull = try word()
        guard try word() == Int(PostgresType.text.rawValue), hasNull == 0, dimensions <= 1 else { throw Self.noTexts }
        guard dimensions == 1 else { return [] }
        let count = try word()
        _ = try word()
        var texts: [String] = []
        for _ in 0..<count {
            let length = try word()
            guard length >= 0, place + length <= bytes.count,
                let text = String(validating: bytes[place..<place + length], as: UTF8.self)
            else { throw Self.noTexts }
            texts.append(text)
            place += length
        }
        return texts
    }

    private static var noTexts: PostgresError { PostgresError(message: "Postgres sent no array of texts") }
}

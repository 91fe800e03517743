import JSON
import SyncModel

extension Column {
    /// Appends the canonical form of a JSON value of this column (client contract, table of types).
    ///
    /// - Parameters:
    ///   - value: what a change gives the column.
    ///   - maximumBytes: the most bytes of canonical JSON that a value may have.
    ///   - bytes: where to append; after a refusal they may hold a beginning of the value.
    /// - Returns: whether the value counts as altered: spelled otherwise, or of another JSON type, than the form appended.
    /// - Throws: ``SyncModel/RefusalCode/invalidValue`` or ``SyncModel/RefusalCode/valueTooLarge``, with a message.
    package func appendCanonical(
        _ value: borrowing JSONValue, maximumBytes: Int, to bytes: inout [UInt8]
    ) throws(ChangeRefusal) -> Bool {
        try CanonicalForm(self, maximumBytes: maximumBytes).append(value, to: &bytes)
    }
}

extension CanonicalForm {
    /// Appends a JSON value; see ``SyncModel/Column/appendCanonical(_:maximumBytes:to:)``.
    func append(_ value: borrowing JSONValue, to bytes: inout [UInt8]) throws(ChangeRefusal) -> Bool {
        do throws(ValueRefusal) {
            if value.isNull { return try appendNull(to: &bytes) }
            if column.type == .json { return try append(json: value, to: &bytes) }
            if let text = value.string { return try append(string: text, to: &bytes) }
            if let number = value.numberText { return try append(number: number, to: &bytes) }
            if let bool = value.bool { return try append(bool, to: &bytes) }
            throw wrongType
        } catch {
            throw ChangeRefusal(error, column: column)
        }
    }

    /// A device may keep JSON as the text it sent, so any other spelling than the minified one counts.
    private func append(json value: borrowing JSONValue, to bytes: inout [UInt8]) throws(ValueRefusal) -> Bool {
        var minified: [UInt8] = []
        do throws(JSONError) {
            try value.appendMinified(to: &minified, maximumDepth: Self.maximumDepth, refusesNUL: true)
        } catch {
            throw .invalid("\(column.name): \(error.message)")
        }
        let isRespelled = !minified.span.hasSameBytes(as: value.sourceBytes)
        let isAltered = try append(minified: minified.span, to: &bytes)
        return isAltered || isRespelled
    }
}

import CanonicalValues
import SyncModel

/// The default of a column as an SQL literal of its type.
///
/// Rows that are older than their column get it from Postgres, and so do rows written by a worker that does not know the
/// column yet: both must then read as if ordering had filled it in (I4).
enum DefaultLiteral {
    /// The literal; `nil` where none or NULL is declared.
    ///
    /// - Throws: `CanonicalValueError` where the default is no value of the column's type.
    static func sql(of column: Column) throws(CanonicalValueError) -> String? {
        guard let json = column.defaultValue else { return nil }
        var reader = CanonicalValueReader()
        do {
            return try json.withUnsafeBufferPointer { buffer in
                try reader.read(buffer, as: column.type) { value -> String? in
                    switch value {
                    case .null: nil
                    case .integer(let integer):
                        column.type == .boolean ? (integer == 0 ? "false" : "true") : cast("'\(integer)'", column)
                    case .real(let real): cast("'\(real)'", column)
                    case .text(let text): cast(try text.withUnsafeBufferPointer(quoted), column)
                    case .bytes(let bytes): SQLText.literal(bytes.withUnsafeBufferPointer(Array.init))
                    }
                }
            }
        } catch {
            throw CanonicalValueError(type: column.type.name)
        }
    }

    private static func cast(_ literal: String, _ column: Column) -> String {
        "\(literal)::\(column.type.postgresName)"
    }

    private static func quoted(_ utf8: UnsafeBufferPointer<UInt8>) throws(CanonicalValueError) -> String {
        // SQL ends at a NUL, which no type admits.
        guard !utf8.contains(0), let text = String(validating: utf8, as: UTF8.self) else {
            throw CanonicalValueError(type: "text")
        }
        return SQLText.literal(text)
    }
}

import SyncModel

/// How differences spell what they show: short, on one line.
enum DifferenceFormatter {
    /// How many bytes of a value are shown.
    private static let maximum = 120

    /// Text in quotes.
    static func quoted(_ bytes: some Collection<UInt8>) -> String { "\"\(shortened(bytes))\"" }

    /// Canonical JSON, as it is where it is short; `nil` where there is none.
    static func json(_ bytes: (some Collection<UInt8>)?) -> String {
        guard let bytes, !bytes.isEmpty else { return "no value" }
        return shortened(bytes)
    }

    /// An optional number or name.
    static func optional(_ value: (some CustomStringConvertible)?) -> String { value.map { "\($0)" } ?? "none" }

    private static func shortened(_ bytes: some Collection<UInt8>) -> String {
        guard bytes.count <= maximum else {
            return String(decoding: bytes.prefix(maximum), as: UTF8.self) + "… (\(bytes.count) bytes)"
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// What rows and devices are called.
struct RowNames: Sendable {
    private let tables: [Table]

    /// Takes the names from a schema version; without one tables have numbers.
    init(_ schema: Schema?) { tables = schema?.tables ?? [] }

    func table(_ number: Int) -> String {
        tables.indices.contains(number) ? tables[number].name : "number \(number)"
    }

    func column(_ number: Int, of table: Int) -> String {
        guard tables.indices.contains(table), tables[table].columns.indices.contains(number) else {
            return "number \(number)"
        }
        return tables[table].columns[number].name
    }

    func row(_ key: RowKey) -> String { "table \(table(key.table)), owner \(key.owner), id \(key.id)" }

    func device(_ key: DeviceKey) -> String {
        "device \(key.device.knowledgeID) of \(key.device.caller), with owner \(key.owner)"
    }
}

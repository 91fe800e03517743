import Digest
import SyncModel

/// The `serverId` of a document: a UUID of version 8 (RFC 9562) made of its content, so that a repeated create is the same row.
///
/// It holds `createdOn`: milliseconds since 1970 (48 bits), the version, microseconds (10 bits), the variant, and 64 bits of a
/// SHA-256 of table, times and values.
enum ServerID {
    /// - Parameters:
    ///   - createdOn: microseconds since 1970, from ``range``.
    ///   - values: canonical JSON by column; `nil` for one that is left to its default. Null where that is the default counts as
    ///     none: a create that is repeated under a later schema version has columns that it did not have.
    static func make(of table: Table, createdOn: Int64, updatedOn: Int64, values: [[UInt8]?]) -> RowID {
        // No part contains a line break.
        var content = Array("weir.tracker.1\n\(table.name)\n\(createdOn)\n\(updatedOn)\n".utf8)
        for (column, value) in zip(table.columns, values) {
            guard let value, column.defaultValue != nil || !value.elementsEqual("null".utf8) else { continue }
            content += Array("\(column.name):".utf8) + value + [UInt8(ascii: "\n")]
        }
        let digest = SHA256.digest(of: content)
        let hash = digest[0..<8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let (milliseconds, microseconds) = UInt64(createdOn).quotientAndRemainder(dividingBy: 1000)
        let high = milliseconds << 16 | 0x8 << 12 | microseconds << 2 | hash >> 62
        let low = 0b10 << 62 | hash & (1 << 62 - 1)
        let bytes = [high, low].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) } }
        let groups = [0..<4, 4..<6, 6..<8, 8..<10, 10..<16].map { hexadecimal(bytes[$0]) }
        return RowID(unchecked: groups.joined(separator: "-"))
    }

    /// The times that ids can hold: from 1970 to 9999.
    static let range = Int64(0)..<253_402_300_800_000_000

    /// The positions of dashes in a UUID, as bits.
    private static let dashes: UInt64 = 1 << 8 | 1 << 13 | 1 << 18 | 1 << 23

    /// When a document was created, in microseconds since 1970, where its id says so: one of ``make(of:createdOn:updatedOn:values:)``,
    /// or a UUID of version 7.
    static func createdOn(_ id: Span<UInt8>) -> Int64? {
        guard id.count == 36, id[14] == UInt8(ascii: "7") || id[14] == UInt8(ascii: "8") else { return nil }
        var (high, low): (UInt64, UInt64) = (0, 0)
        for position in id.indices {
            let letter = id[position]
            let digit: UInt8
            switch letter {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = letter - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = letter - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = letter - UInt8(ascii: "A") + 10
            case UInt8(ascii: "-") where dashes >> position & 1 == 1: continue
            default: return nil
            }
            if dashes >> position & 1 == 1 { return nil }
            (high, low) = (high << 4 | low >> 60, low << 4 | UInt64(digit))
        }
        guard low >> 62 == 0b10 else { return nil }
        let milliseconds = Int64(high >> 16)
        switch high >> 12 & 0xF {
        case 7: return value(milliseconds * 1000)
        case 8:
            let microseconds = Int64(high >> 2 & 0x3FF)
            return microseconds < 1000 ? value(milliseconds * 1000 + microseconds) : nil
        default: return nil
        }
    }

    private static func value(_ microseconds: Int64) -> Int64? { range.contains(microseconds) ? microseconds : nil }
}

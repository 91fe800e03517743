import Seeded
import SyncModel

extension SeededRandom {
    /// A column type and canonical JSON of it, written independently of the code under test.
    mutating func canonicalValue() -> (ColumnType, [UInt8]) {
        switch Int.random(in: 0..<8, using: &self) {
        case 0:
            let value = Int64(truncatingIfNeeded: next()) >> Int64.random(in: 0..<64, using: &self)
            let isLarge = value > 9_007_199_254_740_991 || value < -9_007_199_254_740_991
            return (.integer, Array((isLarge ? "\"\(value)\"" : "\(value)").utf8))
        case 1:
            // Whole numbers and short fractions, whose shortest spelling is plain.
            let whole = Int.random(in: -99_999...99_999, using: &self)
            let fraction = Int.random(in: 1...9, using: &self)
            return (.real, Array((Bool.random(using: &self) ? "\(whole)" : "\(whole).\(fraction)").utf8))
        case 2: return (.boolean, Array((Bool.random(using: &self) ? "true" : "false").utf8))
        case 3: return (.text, jsonString())
        case 4: return (.json, jsonString())
        case 5:
            let decimal = "\"\(Int.random(in: -9...9, using: &self)).50\""
            return (.decimal(precision: 10, scale: 2), Array(decimal.utf8))
        case 6: return (.bytes, base64())
        default:
            let moment = "\"2026-01-02T03:04:05.000\(Int.random(in: 100...999, using: &self))Z\""
            return (.timestamp, Array(moment.utf8))
        }
    }

    private mutating func jsonString() -> [UInt8] {
        let scalars: [String] = [
            "a", "Z", " ", "/", "é", "e\u{301}", "\u{1F600}", "\u{7F}", "\u{2028}", "\u{FFFF}", #"\""#, #"\\"#, #"\n"#,
            #"\u0000"#, #"\u001f"#, #"\t"#,
        ]
        var text = "\""
        for _ in 0..<Int.random(in: 0...40, using: &self) { text += scalars.randomElement(using: &self) ?? "" }
        return Array((text + "\"").utf8)
    }

    private mutating func base64() -> [UInt8] {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text = [UInt8(ascii: "\"")]
        for _ in 0..<Int.random(in: 0...40, using: &self) * 4 { text.append(alphabet[Int(next() & 63)]) }
        switch next() % 3 {
        case 0: text += [alphabet[Int(next() & 63)], alphabet[Int(next() & 3) << 4]] + Array("==".utf8)
        case 1:
            text += [alphabet[Int(next() & 63)], alphabet[Int(next() & 63)], alphabet[Int(next() & 15) << 2]]
            text.append(UInt8(ascii: "="))
        default: break
        }
        return text + [UInt8(ascii: "\"")]
    }
}

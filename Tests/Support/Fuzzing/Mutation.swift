import Seeded

/// Makes inputs from others by small damage, as transmission, hand editing and malice do.
struct Mutation {
    /// What pieces are taken from.
    let corpus: [[UInt8]]
    /// DifferenceFormatter of the format: its punctuation, keywords and extremes.
    let words: [[UInt8]]

    /// More bytes than this do not come of growing.
    private static let largest = 1 << 16

    /// Bytes that formats of texts and numbers tend to treat apart.
    private static let edges: [UInt8] = [0x00, 0x01, 0x0A, 0x20, 0x22, 0x5C, 0x7F, 0x80, 0xBF, 0xC0, 0xED, 0xF4, 0xFF]

    /// Damages an input in one to four places.
    func damage(_ bytes: inout [UInt8], _ random: inout SeededRandom) {
        for _ in 0..<Int.random(in: 1...4, using: &random) { damageOnce(&bytes, &random) }
    }

    private func damageOnce(_ bytes: inout [UInt8], _ random: inout SeededRandom) {
        let place = Int.random(in: 0...bytes.count, using: &random)
        let piece = Self.range(of: bytes, &random)
        switch Int.random(in: 0..<10, using: &random) {
        case 0 where place < bytes.count: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 1 where place < bytes.count: bytes[place] = .random(in: .min ... .max, using: &random)
        case 2 where place < bytes.count: bytes[place] = Self.edges.randomElement(using: &random)!
        case 3: bytes.insert(Self.edges.randomElement(using: &random)!, at: place)
        case 4: bytes.removeSubrange(piece)
        case 5: bytes.removeSubrange(place...)
        case 6 where bytes.count < Self.largest:
            // Once more, or many times: nesting and repetition.
            let count = random.once(in: 8) ? Int.random(in: 2...200, using: &random) : 1
            let copy = Array(bytes[piece].prefix(Self.largest / count))
            bytes.insert(contentsOf: (0..<count).flatMap { _ in copy }, at: piece.upperBound)
        case 7 where !words.isEmpty: bytes.insert(contentsOf: words.randomElement(using: &random)!, at: place)
        case 8 where !words.isEmpty: bytes.replaceSubrange(piece, with: words.randomElement(using: &random)!)
        default:
            guard let other = corpus.randomElement(using: &random) else { return }
            bytes.replaceSubrange(piece, with: other[Self.range(of: other, &random)])
        }
    }

    /// A piece, mostly a short one.
    private static func range(of bytes: [UInt8], _ random: inout SeededRandom) -> Range<Int> {
        let start = Int.random(in: 0...bytes.count, using: &random)
        let most = random.once(in: 4) ? bytes.count - start : min(bytes.count - start, 16)
        return start..<(start + Int.random(in: 0...most, using: &random))
    }
}

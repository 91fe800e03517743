/// What happened in a run: a hash of all of it, and the newest lines in words.
struct Trace {
    /// FNV-1a of every choice and line.
    private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    private var lines: [String] = []
    private var oldest = 0

    /// How many of the newest lines are kept.
    var kept = 400

    /// Adds a number to the hash.
    mutating func mix(_ number: Int) {
        hash = (hash ^ UInt64(truncatingIfNeeded: number)) &* 0x100_0000_01B3
    }

    /// Adds a line.
    mutating func note(_ line: String) {
        for byte in line.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        if lines.count < kept {
            lines.append(line)
        } else {
            lines[oldest] = line
            oldest = (oldest + 1) % kept
        }
    }

    /// The newest lines, oldest first.
    func tail(_ count: Int) -> [String] { Array((lines[oldest...] + lines[..<oldest]).suffix(count)) }
}

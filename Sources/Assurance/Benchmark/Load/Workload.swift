import JSONText

/// What devices send: notes with a realistic mix of columns, about 280 bytes as a change, the same for the same seed.
enum Workload {
    /// The schema file that the server is started with.
    static let schema = schema(policy: "lastSyncWins")

    static func schema(policy: String) -> String {
        """
        tables:
          note:
            policy: \(policy)
            columns:
              list: { type: uuid, nullable: false }
              title: { type: text, nullable: false, length: 200 }
              body: { type: text, length: 2000 }
              done: { type: boolean, nullable: false, default: false }
              position: { type: real, nullable: false, default: 0 }
              due: timestamp

        """
    }

    private static let words: [StaticString] = [
        "river", "stone", "bridge", "morning", "letter", "garden", "winter", "paper", "market", "lantern", "harbour",
        "window", "valley", "copper", "thread", "station",
    ]

    /// A row in the canonical form of its columns.
    struct Row: Sendable {
        let id: [UInt8]
        /// Of the change that makes the row; empty for none.
        var changeID: [UInt8] = []
        let list: [UInt8]
        let title: [UInt8]
        let body: [UInt8]
        let isDone: Bool
        let position: Double
        let due: [UInt8]
    }

    /// How devices choose ids, which decides how many pages of an index a transaction touches.
    enum IDs: Sendable {
        /// All digits random (UUID version 4): every row is in another page.
        case random
        /// The first twelve digits grow (as in UUID version 7): rows that are created together are in the same pages.
        case growing
    }

    /// Rows that never repeat, from SplitMix64.
    struct Rows: Sendable {
        private var state: UInt64
        private let ids: IDs
        /// The first 48 bits of ids that grow.
        private var moment: UInt64

        /// - Parameter moment: where growing ids start; a device's later rows need a higher one.
        init(seed: UInt64, ids: IDs = .random, moment: UInt64 = 0) {
            state = seed
            self.ids = ids
            self.moment = 1_780_000_000_000 + moment
        }

        mutating func next() -> Row {
            Row(
                id: id(), list: uuid(), title: text(words: 4), body: text(words: 8), isDone: number() & 1 == 0,
                position: Double(number() % 1_000_000) / 64, due: due())
        }

        mutating func number() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }

        private mutating func id() -> [UInt8] {
            var id = uuid()
            guard ids == .growing else { return id }
            moment += 1
            let digits = Array("0123456789abcdef".utf8)
            // Eight digits, a hyphen, four digits.
            for (position, index) in [0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12].enumerated() {
                id[index] = digits[Int(moment >> UInt64(44 - 4 * position)) & 15]
            }
            id[14] = UInt8(ascii: "7")
            return id
        }

        private mutating func uuid() -> [UInt8] {
            let digits = Array("0123456789abcdef".utf8)
            var bytes: [UInt8] = []
            bytes.reserveCapacity(36)
            for half in 0..<2 {
                var bits = number()
                for digit in 0..<16 {
                    let index = half * 16 + digit
                    if index == 8 || index == 12 || index == 16 || index == 20 { bytes.append(UInt8(ascii: "-")) }
                    // Version 4, variant 1, as devices make them.
                    let value = index == 12 ? 4 : index == 16 ? 8 | Int(bits & 3) : Int(bits & 15)
                    bytes.append(digits[value])
                    bits >>= 4
                }
            }
            return bytes
        }

        private mutating func text(words count: Int) -> [UInt8] {
            var bytes: [UInt8] = []
            bytes.reserveCapacity(count * 9)
            var bits = number()
            for index in 0..<count {
                if index > 0 { bytes.append(UInt8(ascii: " ")) }
                words[Int(bits & 15)].withUTF8Buffer { bytes += $0 }
                bits >>= 4
            }
            return bytes
        }

        private mutating func due() -> [UInt8] {
            let bits = number()
            func two(_ number: UInt64) -> String { number < 10 ? "0\(number)" : "\(number)" }
            let day = "2026-\(two(bits % 12 + 1))-\(two((bits >> 8) % 28 + 1))"
            let time = "\(two((bits >> 16) % 24)):\(two((bits >> 24) % 60)):\(two((bits >> 32) % 60)).000000Z"
            return Array("\(day)T\(time)".utf8)
        }
    }

    /// Writes rows as changes, separated by commas.
    static func write(_ rows: some Sequence<Row>, to bytes: inout [UInt8]) {
        var isFirst = true
        for row in rows {
            if !isFirst { bytes.append(UInt8(ascii: ",")) }
            isFirst = false
            write(row, to: &bytes)
        }
    }

    static func write(_ row: Row, to bytes: inout [UInt8]) {
        bytes += #"{"table":"note","id":""#.utf8
        bytes += row.id
        bytes += #"","values":{"#.utf8
        writeColumns(of: row, to: &bytes)
        if !row.changeID.isEmpty {
            bytes += #"},"changeId":""#.utf8
            bytes += row.changeID
            bytes += #""}"#.utf8
        } else {
            bytes += "}}".utf8
        }
    }

    /// Writes the members of a row's columns.
    static func writeColumns(of row: Row, to bytes: inout [UInt8]) {
        bytes += #""list":""#.utf8
        bytes += row.list
        bytes += #"","title":""#.utf8
        bytes += row.title
        bytes += #"","body":""#.utf8
        bytes += row.body
        bytes += (row.isDone ? #"","done":true,"position":"# : #"","done":false,"position":"#).utf8
        bytes.appendJSONNumber(row.position)
        bytes += #","due":""#.utf8
        bytes += row.due
        bytes.append(UInt8(ascii: "\""))
    }
}

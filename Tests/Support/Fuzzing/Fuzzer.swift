import Seeded

/// Feeds a decoder with inputs that nobody would send on purpose, and with some that somebody would.
///
/// Every input follows from the seed and its number alone. One that breaks a promise ends the run with an error that
/// names seed, number and bytes; one that traps prints the same on the way down (``TrapReport``).
package struct Fuzzer: Sendable {
    /// What the decoder made of an input; anything else it throws is a broken promise.
    package enum Verdict {
        case accepted
        case refused
    }

    /// How many inputs a run tried, and what became of them.
    package struct Tally: Sendable {
        /// Inputs that the decoder took.
        package var accepted = 0
        /// Inputs that it refused as it promises.
        package var refused = 0
    }

    /// A promise that an input broke.
    package struct BrokenPromise: Error, CustomStringConvertible {
        /// What happened, with the input.
        package let description: String

        /// States what happened.
        package init(_ description: String) { self.description = description }
    }

    private let name: String
    private let seed: UInt64
    private let count: Int
    private let corpus: [[UInt8]]
    private let mutation: Mutation
    private let generate: (@Sendable (inout SeededRandom) -> [UInt8])?

    /// Makes a fuzzer.
    ///
    /// - Parameters:
    ///   - name: the decoder's, for reports.
    ///   - seed: which inputs; another seed gives others.
    ///   - count: how many, see ``TestLength``.
    ///   - corpus: valid inputs.
    ///   - words: what the format is made of, for damage that goes beyond single bytes.
    ///   - generate: makes inputs by the format's rules, valid or nearly so.
    package init(
        _ name: String, seed: UInt64 = 1, count: Int, corpus: [[UInt8]], words: [String] = [],
        generate: (@Sendable (inout SeededRandom) -> [UInt8])? = nil
    ) {
        precondition(!corpus.isEmpty, "damage needs something whole")
        self.name = name
        self.seed = seed
        self.count = count
        self.corpus = corpus
        mutation = Mutation(corpus: corpus, words: words.map { Array($0.utf8) })
        self.generate = generate
    }

    /// An input: a corpus entry or a generated one, mostly damaged.
    func input(_ number: Int) -> [UInt8] {
        var random = SeededRandom(seed: seed &* 0xD129_0D3B_3E4F_5A67 &+ UInt64(number))
        var bytes: [UInt8]
        if let generate, number % 2 == 1 {
            bytes = generate(&random)
        } else {
            bytes = corpus[number / 2 % corpus.count]
        }
        if number / 2 >= corpus.count, !random.once(in: 4) { mutation.damage(&bytes, &random) }
        return bytes
    }

    /// Runs every input; throws at the first that breaks a promise.
    ///
    /// - Parameter decode: decodes, checks what it promises of inputs that it takes, and says what it made of this one.
    ///   What it throws is a broken promise.
    package func run(_ decode: ([UInt8]) throws -> Verdict) throws -> Tally {
        var tally = Tally()
        try TrapReport.during("\(name), seed \(seed)") { report in
            for number in 0..<count {
                let bytes = input(number)
                report.note(number, bytes)
                do {
                    switch try decode(bytes) {
                    case .accepted: tally.accepted += 1
                    case .refused: tally.refused += 1
                    }
                } catch {
                    throw BrokenPromise(
                        "\(name), seed \(seed), case \(number): \(error)\n\(bytes.count) bytes: \(Self.hex(bytes))")
                }
            }
        }
        return tally
    }

    private static func hex(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}

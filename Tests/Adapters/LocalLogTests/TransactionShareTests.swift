import AsyncPrimitives
import ChangeLog
import Seeded
import Testing

@testable import LocalLog

/// What a transaction takes of the appends that wait: small ones first, and of large ones a share.
@Suite(.timeLimit(.minutes(5))) struct TransactionShareTests {
    /// The appends of some producers, and those that a queue was given and has not returned, by their order.
    private struct Model {
        let producers = (0..<3).map { _ in ProducerState() }
        var waiting: [AppendOrder: [Append]] = [:]
        private var count = 0

        mutating func next(bytes: Int, of producer: Int, to place: TopicPartition) throws -> Append {
            let key = Array("\(count)".utf8)
            count += 1
            try producers[producer].begin()
            let append = Append(
                records: [NewRecord(to: place, key: key, value: [UInt8](repeating: 0, count: bytes - 64 - key.count))],
                partitions: [place.partition], producer: producers[producer], promise: LogPromise())
            waiting[append.order, default: []].append(append)
            return append
        }
    }

    private static func number(_ append: Append) -> [UInt8] { append.records[0].key }

    private static func isSmall(_ append: Append) -> Bool { append.size <= WorkQueue.smallBytes }

    /// The invariant of every transaction, for any appends.
    ///
    /// - Of each producer, and of its uploads to each partition, it has the next appends, in the order in which they were added.
    /// - It has the next append of each of them that is small, unless it begins with 2 MiB of small ones.
    /// - It has more than those if a large one comes next, up to the append that reaches the share of large ones.
    @Test(arguments: UInt64(1)...40)
    func everyTransactionHasSmallAppendsFirstAndAShareOfLargeOnes(seed: UInt64) async throws {
        var random = SeededRandom(seed: seed)
        let queue = WorkQueue(maximumBytes: 1 << 30)
        var model = Model()
        var left = 120
        while left > 0 || !model.waiting.isEmpty {
            for _ in 0..<min(left, Int.random(in: 0...12, using: &random)) {
                left -= 1
                let bytes =
                    random.chance(60)
                    ? Int.random(in: 100...WorkQueue.smallBytes, using: &random)
                    : [WorkQueue.smallBytes + 1, 200_000, WorkQueue.largeBytes, 1 << 20, 3 << 20]
                        .randomElement(using: &random) ?? 0
                let topic = random.chance(50) ? Topic.uploads : .ordered
                try await queue.add(
                    model.next(
                        bytes: bytes, of: Int.random(in: 0..<3, using: &random),
                        to: TopicPartition(topic, Int.random(in: 0..<3, using: &random))))
            }
            let before = model.waiting
            let work = try #require(await queue.next(isWaiting: false))
            for append in work.appends {
                let first = model.waiting[append.order]?.removeFirst()
                try #require(first.map(Self.number) == Self.number(append))
                if model.waiting[append.order]?.isEmpty == true { model.waiting[append.order] = nil }
            }
            check(work.appends, before)
            queue.finish(work.appends)
        }
    }

    private func check(_ taken: [Append], _ waiting: [AppendOrder: [Append]]) {
        let numbers = Set(taken.map(Self.number))
        let small = taken.prefix(while: Self.isSmall)
        let rest = taken.dropFirst(small.count)
        let isFull = Self.bytes(small) >= WorkQueue.transactionBytes
        for appends in waiting.values where Self.isSmall(appends[0]) {
            #expect(isFull || numbers.contains(Self.number(appends[0])))
        }
        let hasLarge = waiting.values.contains { !Self.isSmall($0[0]) }
        #expect(!hasLarge || !rest.isEmpty)
        #expect(!rest.contains(where: Self.isSmall))
        #expect(Self.bytes(rest.dropLast()) < WorkQueue.largeBytes)
    }

    private static func bytes(_ appends: ArraySlice<Append>) -> Int { appends.reduce(0) { $0 + $1.size } }
}

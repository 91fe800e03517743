import Glibc
import Synchronization

/// The body of a request, in one piece.
///
/// It counts against the server's bytes in flight for as long as somebody holds it; let it go once it is read.
package final class HTTPBody: @unchecked Sendable {
    // Unchecked: `memory` is written before init alone, read by anybody after it, and freed in deinit, which runs when
    // nobody holds the body any more.
    private let memory: UnsafeMutableRawPointer?
    private let reservation: Int
    private let budget: ByteBudget?

    /// The size in bytes, after decompression.
    package let count: Int

    /// How many zero bytes can be read after the end, so that a parser that reads ahead in wide steps needs no copy.
    package static var padding: Int { 64 }

    /// A body without bytes.
    package static let empty = HTTPBody(memory: nil, count: 0, reservation: 0, budget: nil)

    /// Takes over memory from `malloc` that holds `count` bytes and the padding, and a reservation of the budget.
    init(memory: UnsafeMutableRawPointer?, count: Int, reservation: Int, budget: ByteBudget?) {
        self.memory = memory
        self.count = count
        self.reservation = reservation
        self.budget = budget
    }

    deinit {
        free(memory)
        budget?.giveBack(reservation)
    }

    /// Lends the bytes; the pointer must not leave the closure.
    ///
    /// `padding` zero bytes may be read after the end, except for an empty body, which may have no memory.
    package func withUnsafeBytes<Result, Failure: Error>(
        _ read: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try read(UnsafeRawBufferPointer(start: memory, count: count))
    }

    /// A copy of the bytes.
    package var bytes: [UInt8] {
        withUnsafeBytes { Array($0) }
    }
}

/// The bytes of request bodies that a server may hold at a time.
final class ByteBudget: Sendable {
    private let limit: Int
    private let used = Atomic<Int>(0)

    init(limit: Int) {
        self.limit = limit
    }

    /// What is taken now.
    var inFlight: Int { used.load(ordering: .relaxed) }

    /// Whether so many bytes could be taken now; nothing is reserved.
    func hasRoom(for count: Int) -> Bool {
        inFlight + count <= limit
    }

    /// Takes bytes if they fit.
    ///
    /// Never waits: whoever is refused gives up what it has, so that nobody waits for anybody.
    func take(_ count: Int) -> Bool {
        let after = used.wrappingAdd(count, ordering: .relaxed).newValue
        if after <= limit { return true }
        used.wrappingSubtract(count, ordering: .relaxed)
        return false
    }

    /// Takes bytes if they fit, or if nothing is taken yet: so that what is larger than the limit goes through alone.
    func takeOrBeAlone(_ count: Int) -> Bool {
        let after = used.wrappingAdd(count, ordering: .relaxed).newValue
        if after <= limit || after == count { return true }
        used.wrappingSubtract(count, ordering: .relaxed)
        return false
    }

    /// Gives back what was taken.
    func giveBack(_ count: Int) {
        used.wrappingSubtract(count, ordering: .relaxed)
    }
}

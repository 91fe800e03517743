import Glibc
import Synchronization

/// The body of a request, in contiguous memory.
///
/// It counts against the server's bytes in flight until it is released.
package final class HTTPBody: @unchecked Sendable {
    // Unchecked: `memory` is written before init only, and freed in deinit.
    private let memory: UnsafeMutableRawPointer?
    private let reservation: Int
    private let budget: ByteBudget?

    /// Bytes after decompression.
    package let count: Int

    /// Zero bytes after the end that may be read, so that a parser that reads ahead needs no copy.
    package static var padding: Int { 64 }

    package static let empty = HTTPBody(memory: nil, count: 0, reservation: 0, budget: nil)

    /// Takes ownership of memory from `malloc` with `count` bytes and the padding, and of a reservation in the budget.
    init(memory: UnsafeMutableRawPointer?, count: Int, reservation: Int, budget: ByteBudget?) {
        self.memory = memory
        self.count = count
        self.reservation = reservation
        self.budget = budget
    }

    deinit {
        free(memory)
        budget?.release(reservation)
    }

    /// The pointer is valid in the closure only.
    ///
    /// `padding` zero bytes may be read after the end, unless the body is empty.
    package func withUnsafeBytes<Result, Failure: Error>(
        _ read: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try read(UnsafeRawBufferPointer(start: memory, count: count))
    }

    package var bytes: [UInt8] {
        withUnsafeBytes { Array($0) }
    }
}

/// A limit on bytes held at a time.
final class ByteBudget: Sendable {
    private let limit: Int
    private let used = Atomic<Int>(0)

    init(limit: Int) {
        self.limit = limit
    }

    var inFlight: Int { used.load(ordering: .relaxed) }

    /// Whether so many bytes could be reserved now.
    func canReserve(_ count: Int) -> Bool {
        inFlight + count <= limit
    }

    /// Reserves bytes if they fit.
    ///
    /// Never waits: a refused request releases its other reservations, so that requests cannot deadlock.
    func reserve(_ count: Int) -> Bool {
        let after = used.wrappingAdd(count, ordering: .relaxed).newValue
        if after <= limit { return true }
        used.wrappingSubtract(count, ordering: .relaxed)
        return false
    }

    func release(_ count: Int) {
        used.wrappingSubtract(count, ordering: .relaxed)
    }
}

import Glibc

/// The body of a request, in contiguous memory.
///
/// It counts against the server's bytes in flight until it is released.
package final class HTTPBody: @unchecked Sendable {
    // Unchecked: `memory` is written before init only, and freed in deinit.
    private let memory: UnsafeMutableRawPointer?
    /// Held until the body is released.
    private let reservation: BodyReservation?

    /// Bytes after decompression.
    package let count: Int

    /// Zero bytes after the end that may be read, so that a parser that reads ahead needs no copy.
    package static var padding: Int { 64 }

    package static let empty = HTTPBody(memory: nil, count: 0, reservation: nil)

    /// Takes ownership of memory from `malloc` with `count` bytes and the padding.
    init(memory: UnsafeMutableRawPointer?, count: Int, reservation: BodyReservation?) {
        self.memory = memory
        self.count = count
        self.reservation = reservation
    }

    deinit { free(memory) }

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

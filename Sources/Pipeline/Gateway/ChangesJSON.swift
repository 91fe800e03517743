import Synchronization

/// The changes of a request as they were spelled, to be taken once.
///
/// Whoever appends them takes them, so that nobody holds the bytes while their outcome is waited for.
final class ChangesJSON: Sendable {
    /// The size in bytes.
    let byteCount: Int
    private let bytes: Mutex<[UInt8]?>

    init(_ bytes: [UInt8]) {
        byteCount = bytes.count
        self.bytes = Mutex(bytes)
    }

    /// The JSON array; traps the second time.
    func take() -> [UInt8] {
        guard let taken = bytes.withLock({ $0.take() }) else { preconditionFailure("changes are appended once") }
        return taken
    }
}

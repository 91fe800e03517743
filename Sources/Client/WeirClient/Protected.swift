import Foundation

/// A value that several threads use, one at a time, and that copies of what refers to it share.
///
/// `@unchecked Sendable`: the value is reached within the lock alone.
final class Protected<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    init(_ value: sending Value) { self.value = value }

    /// Runs a closure that must be short and may not wait.
    func withLock<Result>(_ body: (inout Value) -> sending Result) -> sending Result {
        lock.lock()
        defer { lock.unlock() }
        return body(&value)
    }
}

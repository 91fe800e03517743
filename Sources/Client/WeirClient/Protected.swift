import Synchronization

/// A value that several threads use, one at a time, and that copies of what refers to it share.
final class Protected<Value>: Sendable {
    private let value: Mutex<Value>

    init(_ value: sending Value) { self.value = Mutex(value) }

    /// Runs a closure that must be short and may not wait.
    func withLock<Result>(_ body: (inout sending Value) -> sending Result) -> sending Result { value.withLock(body) }
}

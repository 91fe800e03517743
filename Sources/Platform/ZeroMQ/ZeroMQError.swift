import CZeroMQ
import Glibc

/// A call of libzmq that failed.
package struct ZeroMQError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What failed: the call and what it was about.
    package let call: String
    /// The number of the error, as `errno` has it.
    package let code: Int32

    /// States an error.
    package init(_ call: String, code: Int32) {
        self.call = call
        self.code = code
    }

    /// The error of the call that has just failed on this thread.
    static func last(_ call: String) -> ZeroMQError { ZeroMQError(call, code: zmq_errno()) }

    /// The call and the reason.
    package var description: String { "\(call): \(String(cString: zmq_strerror(code)))" }
}

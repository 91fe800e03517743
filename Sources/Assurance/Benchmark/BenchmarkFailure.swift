/// Why a measurement could not be made, in words for whoever runs it.
package struct BenchmarkFailure: Error, CustomStringConvertible {
    /// The reason, with what to do where something can be done.
    package let description: String

    init(_ description: String) { self.description = description }

    /// A call of the system that failed.
    static func system(_ call: String, _ code: Int32) -> BenchmarkFailure {
        BenchmarkFailure("\(call) failed: \(SystemCall.text(code))")
    }
}

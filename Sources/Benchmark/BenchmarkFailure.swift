/// Why a measurement could not be made, in words for whoever runs it.
public struct BenchmarkFailure: Error, CustomStringConvertible {
    /// The reason, with what to do where something can be done.
    public let description: String

    init(_ description: String) { self.description = description }

    /// A call of the system that failed.
    static func system(_ call: String, _ code: Int32) -> BenchmarkFailure {
        BenchmarkFailure("\(call) failed: \(SystemCall.text(code))")
    }
}

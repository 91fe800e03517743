/// Numbers of the same kind, one for each repetition or each request.
struct Samples: Sendable {
    private(set) var sorted: [Double]

    /// At least one.
    init(_ values: some Sequence<Double>) {
        sorted = values.sorted()
        precondition(!sorted.isEmpty, "a distribution has at least one number")
    }

    var median: Double { quantile(0.5) }
    var low: Double { sorted[0] }
    var high: Double { sorted[sorted.count - 1] }

    /// The smallest number that so large a share is not above.
    func quantile(_ share: Double) -> Double {
        let place = (share * Double(sorted.count)).rounded(.up) - 1
        return sorted[min(sorted.count - 1, max(0, Int(place)))]
    }
}

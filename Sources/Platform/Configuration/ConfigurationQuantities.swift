extension ConfigurationType where Value == Duration {
    /// A time span as an integer with a unit: `10s`, `250ms`.
    package static func duration(in range: ClosedRange<Duration>) -> ConfigurationType {
        ConfigurationType(
            placeholder: "DURATION",
            expected: "a duration from \(Quantity.duration.render(range.lowerBound.nanoseconds)) to "
                + "\(Quantity.duration.render(range.upperBound.nanoseconds)), with a unit (\(Quantity.duration.units))",
            parse: { text in
                guard let count = text.one.flatMap(Quantity.duration.parse) else { return nil }
                let duration = Duration.nanoseconds(count)
                return range.contains(duration) ? duration : nil
            },
            render: { Quantity.duration.render($0.nanoseconds) })
    }
}

extension ConfigurationType where Value == Int {
    /// A number of bytes, alone or with a unit: `65536`, `64KiB`.
    package static func byteSize(in range: ClosedRange<Int>) -> ConfigurationType {
        ConfigurationType(
            placeholder: "SIZE",
            expected: "a size from \(Quantity.bytes.render(Int64(range.lowerBound))) to "
                + "\(Quantity.bytes.render(Int64(range.upperBound))), in bytes or with a unit (\(Quantity.bytes.units))",
            parse: { text in
                guard let count = text.one.flatMap(Quantity.bytes.parse) else { return nil }
                return Int(exactly: count).flatMap { range.contains($0) ? $0 : nil }
            },
            render: { Quantity.bytes.render(Int64($0)) })
    }
}

/// Whole numbers with units.
private struct Quantity: Sendable {
    /// From the smallest to the largest.
    let scale: [(unit: String, size: Int64)]
    /// Whether a number without a unit is allowed, and counts the smallest unit.
    let allowsBareNumbers: Bool

    static let duration = Quantity(
        scale: [
            ("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000),
            ("h", 3_600_000_000_000), ("d", 86_400_000_000_000),
        ], allowsBareNumbers: false)

    static let bytes = Quantity(
        scale: [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)],
        allowsBareNumbers: true)

    var units: String { scale.map(\.unit).joined(separator: ", ") }

    /// The count in the smallest unit; `nil` where the text is no quantity or does not fit 64 bits.
    @Sendable func parse(_ text: String) -> Int64? {
        let digits = text.utf8.prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
        let unit = text.utf8.dropFirst(digits.count)
        guard let number = Int64(Substring(digits)) else { return nil }
        if unit.isEmpty { return allowsBareNumbers || number == 0 ? number : nil }
        guard let size = scale.first(where: { $0.unit.utf8.elementsEqual(unit) })?.size else { return nil }
        let (count, overflow) = number.multipliedReportingOverflow(by: size)
        return overflow ? nil : count
    }

    /// The count in the largest unit that leaves no fraction.
    func render(_ count: Int64) -> String {
        guard count != 0, let fit = scale.last(where: { count % $0.size == 0 }) else { return "0" }
        return "\(count / fit.size)\(fit.unit)"
    }
}

extension Duration {
    /// Whole nanoseconds; traps beyond 292 years, which only a declaration could ask for.
    fileprivate var nanoseconds: Int64 {
        components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
    }
}

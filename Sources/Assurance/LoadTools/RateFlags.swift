/// A gateway that limits no rate: a load generator sends and pulls more than the limits of well-behaved devices allow.
package enum RateFlags {
    /// The settings and their values.
    package static let settings = Dictionary(
        uniqueKeysWithValues: ["caller", "device"].flatMap { scope in
            ["requests", "changes", "bytes", "pulled-bytes"].map { ("gateway.\(scope)-\($0)-per-second", "0") }
        } + [("gateway.caller-bytes-per-day", "0")])

    /// The same as flags.
    package static let unlimited = settings.sorted { $0.key < $1.key }.flatMap { ["--" + $0.key, $0.value] }
}

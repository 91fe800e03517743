/// The flags of a gateway that limits no rate: a load generator sends more than the limits of well-behaved devices allow.
package enum RateFlags {
    package static let unlimited =
        ["caller", "device"].flatMap { scope in
            ["requests", "changes", "bytes"].flatMap { ["--gateway.\(scope)-\($0)-per-second", "0"] }
        } + ["--gateway.caller-bytes-per-day", "0"]
}

import Configuration

/// The settings of the ordering stage; the executable scopes them with `ordering.`.
package struct OrderingConfiguration: ConfigurationComponent {
    package var stepBytes = 1 << 20
    package var stepRowBytes = 8 << 20
    /// Beyond it each partition has its part of as much again, and one step more.
    package var overlayBytes = 24 << 20
    /// The size of results after which an append ends, so that the log takes appends of other partitions before the next.
    package var appendBytes = 256 << 10
    package var retryDelay: Duration = .seconds(1)

    package init() {}

    package static var settings: [Setting<Self>] {
        Setting(
            "step-bytes", \.stepBytes, .byteSize(in: 1024...(64 << 20)),
            "Size of the parts that are ordered in one step; steps grow with the backlog up to this.")
        Setting(
            "step-row-bytes", \.stepRowBytes, .byteSize(in: 1024...(1 << 30)),
            "Size of the rows that are read for one step, in one lookup; a part that needs more is taken alone, in several lookups, and one such part at a time in a process."
        )
        Setting(
            "overlay-bytes", \.overlayBytes, .byteSize(in: 1024...(1 << 34)),
            "Size of the results of all partitions that may wait for the tables; each partition may have its part of as much again, and one step more."
        )
        Setting(
            "retry-delay", \.retryDelay, .duration(in: .milliseconds(1)...(.seconds(300))),
            "Pause before a partition is retried after the log or the tables failed.")
    }
}

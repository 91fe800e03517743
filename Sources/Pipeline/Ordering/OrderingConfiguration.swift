import Configuration

/// The settings of the ordering stage; the executable scopes them with `ordering.`.
package struct OrderingConfiguration: ConfigurationComponent {
    private static let defaults = OrderingConfiguration()

    static let stepBytes = ConfigurationKey(
        "step-bytes", .byteSize(in: 1024...(64 << 20)), default: defaults.stepBytes,
        "Size of the messages that are decided in one step; steps grow with the backlog up to this.")
    static let overlayBytes = ConfigurationKey(
        "overlay-bytes", .byteSize(in: 1024...(1 << 34)), default: defaults.overlayBytes,
        "Size of the results of all partitions of a process that may wait for the tables; each may have one step more.")
    static let retryDelay = ConfigurationKey(
        "retry-delay", .duration(in: .milliseconds(1)...(.seconds(300))), default: defaults.retryDelay,
        "Pause before a partition is tried again after the log or the tables failed.")

    /// Every key.
    package static let keys: [any DeclaredConfigurationKey] = [stepBytes, overlayBytes, retryDelay]

    /// How many bytes of messages are decided in one step, at most.
    package var stepBytes: Int
    /// How many bytes of results of all partitions may wait to be written to the tables; beyond, each has one step at a time.
    package var overlayBytes: Int
    /// The pause before a partition is tried again after a failure that may pass.
    package var retryDelay: Duration

    /// Makes settings; the defaults where nothing is said.
    package init(stepBytes: Int = 1 << 20, overlayBytes: Int = 24 << 20, retryDelay: Duration = .seconds(1)) {
        self.stepBytes = stepBytes
        self.overlayBytes = overlayBytes
        self.retryDelay = retryDelay
    }

    /// Reads the settings.
    package init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
        stepBytes = try reader.read(Self.stepBytes)
        overlayBytes = try reader.read(Self.overlayBytes)
        retryDelay = try reader.read(Self.retryDelay)
    }
}

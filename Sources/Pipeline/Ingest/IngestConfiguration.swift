import Configuration

/// The settings of the ingest stage; the executable scopes them with `ingest.`.
package struct IngestConfiguration: ConfigurationComponent {
    static let stepBytes = ConfigurationKey(
        "step-bytes", .byteSize(in: (16 << 10)...(256 << 20)), default: IngestConfiguration().stepBytes,
        "Size of the records of uploads that are checked and appended together; one is taken whatever its size.")

    /// Every key.
    package static let keys: [any DeclaredConfigurationKey] = [stepBytes]

    /// How many bytes of records are checked and appended together, at most; steps grow with the backlog up to here.
    package var stepBytes: Int

    /// Reads the settings.
    package init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
        stepBytes = try reader.read(Self.stepBytes)
    }

    /// Makes settings.
    package init(stepBytes: Int = 1 << 20) {
        self.stepBytes = stepBytes
    }
}

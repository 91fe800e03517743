import Configuration

/// The settings of the ingest stage; the executable scopes them with `ingest.`.
package struct IngestConfiguration: ConfigurationComponent {
    /// The consumer group of `uploads`.
    package static let group = "ingest"

    /// Steps grow with the backlog up to this size.
    package var stepBytes = 1 << 20
    package var deadLetterBytes = 1 << 20
    /// Larger steps are checked on threads of their own.
    ///
    /// Their changes take more time than a change of threads. Not a setting.
    package var largeStepBytes = 2 << 10

    package init() {}

    package static var settings: [Setting<Self>] {
        Setting(
            "step-bytes", \.stepBytes, .byteSize(in: (16 << 10)...(256 << 20)),
            "Size of the records of uploads that are checked and appended together; one is taken whatever its size.")
        Setting(
            "dead-letter-bytes", \.deadLetterBytes, .byteSize(in: 0...(1 << 40)),
            "Size of the dead letters that one owner may cause in an hour; further ones are counted and not appended.")
    }
}

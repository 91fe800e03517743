import SyncModel

/// What a stream has applied, for gateways that limit the uploads which cannot be pulled yet (I10).
///
/// A fan-out reports each step, also one that completes no result: then the stream makes progress nevertheless. It names only
/// what the step has changed, so later reports are merged into earlier ones.
package struct StreamReport: Sendable, Hashable {
    /// The stream's partition.
    package let partition: Int
    /// By partition of `uploads`: the newest part whose results can be pulled from this stream.
    package var uploads: [Int: UploadProgress]
    /// By other partition: the newest upload of the stream's own partition that has a part there, among those whose own part can be
    /// pulled.
    package var partsElsewhere: [Int: Int64]
    /// The parts that touched many bytes of rows, of those that can be pulled since the report before; the largest of them.
    package private(set) var largeParts: [LargePart] = []

    package init(
        partition: Int, uploads: [Int: UploadProgress] = [:], partsElsewhere: [Int: Int64] = [:],
        largeParts: [LargePart] = []
    ) {
        self.partition = partition
        self.uploads = uploads
        self.partsElsewhere = partsElsewhere
        add(largeParts)
    }

    /// The newest upload of the stream's own partition whose own part can be pulled.
    package var passed: UploadReference? {
        uploads[partition].map { UploadReference(partition: partition, offset: $0.offset) }
    }

    /// Adds what another report of the same stream says.
    package mutating func merge(_ other: StreamReport) {
        uploads.merge(other.uploads) { max($0, $1) }
        partsElsewhere.merge(other.partsElsewhere) { max($0, $1) }
        add(other.largeParts)
    }

    /// What a gateway needs that has had no report of the stream: all but what is reported once.
    package var lasting: StreamReport {
        StreamReport(partition: partition, uploads: uploads, partsElsewhere: partsElsewhere)
    }

    private mutating func add(_ parts: [LargePart]) {
        largeParts += parts
        if largeParts.count > LargePart.maximumCount {
            largeParts = Array(largeParts.sorted { $0.touchedBytes > $1.touchedBytes }.prefix(LargePart.maximumCount))
        }
    }
}

extension StreamReport {
    /// A part that touched many bytes of rows, which count in the rate of its device (I10).
    package struct LargePart: Sendable, Hashable {
        /// What is less does not count: it is hardly more than the upload has itself.
        package static let leastBytes = 4096
        /// How many a report has, so that a gateway that does not read is no reason to keep more.
        fileprivate static let maximumCount = 64

        /// The partition of `uploads`.
        package let source: Int
        package let progress: UploadProgress
        package let device: Device
        package let touchedBytes: Int

        package init(source: Int, progress: UploadProgress, device: Device, touchedBytes: Int) {
            self.source = source
            self.progress = progress
            self.device = device
            self.touchedBytes = touchedBytes
        }
    }
}

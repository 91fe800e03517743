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

    package init(partition: Int, uploads: [Int: UploadProgress] = [:], partsElsewhere: [Int: Int64] = [:]) {
        self.partition = partition
        self.uploads = uploads
        self.partsElsewhere = partsElsewhere
    }

    /// The newest upload of the stream's own partition whose own part can be pulled.
    package var passed: UploadReference? {
        uploads[partition].map { UploadReference(partition: partition, offset: $0.offset) }
    }

    /// Adds what another report of the same stream says.
    package mutating func merge(_ other: StreamReport) {
        uploads.merge(other.uploads) { max($0, $1) }
        partsElsewhere.merge(other.partsElsewhere) { max($0, $1) }
    }
}

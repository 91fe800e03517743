/// The highest (record, part) of a partition of `uploads` that was ordered.
package struct UploadProgress: Sendable, Hashable, Comparable {
    /// In the partition of `uploads`.
    package let offset: Int64
    package let part: Int

    package init(offset: Int64, part: Int) {
        self.offset = offset
        self.part = part
    }

    package static func < (left: Self, right: Self) -> Bool {
        (left.offset, left.part) < (right.offset, right.part)
    }
}

/// The state of ordering in one partition, besides rows and device progress.
package struct PartitionState: Sendable, Hashable {
    /// The offset in `changes` of the next part.
    package var nextOffset: Int64
    /// The newest timeStamp assigned.
    package var timeStamp: TimeStamp
    /// The highest (offset, part) ordered of each partition of `uploads` in this epoch (I2).
    package var uploads: [Int: UploadProgress]
    /// The greatest schema ordinal that a part named; rows have all columns of that version.
    package var schemaOrdinal: Int

    /// By default the state of an empty partition.
    package init(
        nextOffset: Int64 = 0, timeStamp: TimeStamp = .zero, uploads: [Int: UploadProgress] = [:],
        schemaOrdinal: Int = 0
    ) {
        self.nextOffset = nextOffset
        self.timeStamp = timeStamp
        self.uploads = uploads
        self.schemaOrdinal = schemaOrdinal
    }

    /// Whether the part is a repeated delivery.
    package func hasSeen(_ part: ChangePart) -> Bool {
        guard let seen = uploads[part.upload.partition] else { return false }
        return UploadProgress(offset: part.upload.offset, part: part.part) <= seen
    }
}

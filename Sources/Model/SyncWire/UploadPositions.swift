import SyncModel

/// ``PartitionState/uploads`` as stored: `weir.v1.UploadPositions` (storage.proto).
package struct UploadPositions: Sendable, Hashable, WireEncodable, WireDecodable {
    /// The highest (offset, part) ordered of each partition of `uploads`.
    package var uploads: [Int: UploadProgress]

    package init(_ uploads: [Int: UploadProgress]) {
        self.uploads = uploads
    }

    package init(from reader: inout WireReader) throws(WireError) {
        try reader.requireFormat()
        uploads = [:]
        while let field = try reader.next() {
            switch field.number {
            case 1: try reader.format(field)
            case 2:
                let entry = try reader.message(field, Self.entry)
                guard uploads.updateValue(entry.progress, forKey: entry.partition) == nil else {
                    throw reader.failure(.repeated, field)
                }
            default: try reader.skip(field)
            }
        }
    }

    /// By ascending partition.
    package func write(to writer: inout WireWriter) {
        writer.number(1, WireFormat.current)
        for (partition, progress) in uploads.sorted(by: { $0.key < $1.key }) {
            writer.message(2) {
                $0.number(1, partition)
                $0.number(2, progress.offset)
                $0.number(3, progress.part)
            }
        }
    }

    /// Reads `weir.v1.UploadPosition`.
    private static func entry(
        from reader: inout WireReader
    ) throws(WireError) -> (partition: Int, progress: UploadProgress) {
        var partition = 0
        var offset: Int64 = 0
        var part = 0
        while let field = try reader.next() {
            switch field.number {
            case 1: partition = try reader.count(field)
            case 2: offset = try reader.number(field)
            case 3: part = try reader.count(field)
            default: try reader.skip(field)
            }
        }
        return (partition, UploadProgress(offset: offset, part: part))
    }
}

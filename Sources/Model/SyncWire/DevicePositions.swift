import SyncModel

/// Up to which timeStamp a device holds each owner's rows, as the device registry stores it: `weir.v1.DevicePositions`
/// (storage.proto).
package struct DevicePositions: Sendable, Hashable, WireEncodable, WireDecodable {
    package var owners: [SyncID: TimeStamp]

    package init(_ owners: [SyncID: TimeStamp]) { self.owners = owners }

    package init(from reader: inout WireReader) throws(WireError) {
        try reader.requireFormat()
        owners = [:]
        while let field = try reader.next() {
            switch field.number {
            case 1: try reader.format(field)
            case 2:
                let entry = try reader.message(field, Self.entry)
                guard owners.updateValue(entry.timeStamp, forKey: entry.owner) == nil else {
                    throw reader.failure(.repeated, field)
                }
            default: try reader.skip(field)
            }
        }
    }

    /// By the owners' bytes.
    package func write(to writer: inout WireWriter) {
        writer.number(1, WireFormat.current)
        for (owner, timeStamp) in owners.sorted(by: { $0.key < $1.key }) {
            writer.message(2) {
                $0.id(1, owner)
                $0.timeStamp(2, timeStamp)
            }
        }
    }

    /// Reads `weir.v1.DevicePosition`.
    private static func entry(
        from reader: inout WireReader
    ) throws(WireError) -> (owner: SyncID, timeStamp: TimeStamp) {
        var owner: SyncID?
        var timeStamp = TimeStamp.zero
        while let field = try reader.next() {
            switch field.number {
            case 1: owner = try reader.id(field)
            case 2: timeStamp = try reader.timeStamp(field)
            default: try reader.skip(field)
            }
        }
        guard let owner else { throw reader.missing(1) }
        return (owner, timeStamp)
    }
}

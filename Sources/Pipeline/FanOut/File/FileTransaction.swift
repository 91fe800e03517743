import SQLite
import SyncModel

/// What one transaction on a stream file has come to, before it is committed.
struct FileTransaction {
    /// The file's state after it.
    var state: FileState
    /// The owners that it met.
    private(set) var owners: [SyncID: TouchedOwner] = [:]
    /// How many rows it wrote.
    var rowCount = 0
    /// The partitions of `uploads` that it moved.
    private let uploadsBefore: [Int: UploadProgress]
    /// The heads as they are committed.
    private let committed: (SyncID) -> OwnerHeads?

    /// Begins with a file's state.
    init(_ state: FileState, committed: @escaping (SyncID) -> OwnerHeads?) {
        self.state = state
        self.committed = committed
        uploadsBefore = state.position.uploads
    }

    /// The owner's number, a new one for an owner that the file does not have.
    mutating func number(of owner: SyncID) -> Int64 {
        if let touched = owners[owner] { return touched.heads.number }
        let touched: TouchedOwner
        if let heads = committed(owner) {
            touched = TouchedOwner(heads, isNew: false)
        } else {
            touched = TouchedOwner(OwnerHeads(number: state.nextOwner), isNew: true)
            state.nextOwner += 1
        }
        owners[owner] = touched
        return touched.heads.number
    }

    /// Takes in that an owner has a row of a device.
    ///
    /// - Returns: the numbers of the owner and of its device.
    mutating func move(_ device: KnowledgeID, of owner: SyncID, to timeStamp: TimeStamp) -> (
        owner: Int64, device: Int64
    ) {
        let number = number(of: owner)
        var next = state.nextDevice
        let device = owners[owner]?.move(device, to: timeStamp, nextDevice: &next) ?? 0
        state.nextDevice = next
        rowCount += 1
        return (number, device)
    }

    /// Writes the heads and the position.
    ///
    /// - Returns: the checksum of the meta record.
    mutating func finish(in file: StreamFile) throws -> Int64? {
        for (owner, touched) in owners { try file.write(touched, of: owner, &state) }
        for (partition, progress) in state.position.uploads where uploadsBefore[partition] != progress {
            try file.writeUpload(partition, from: uploadsBefore[partition], to: progress, &state)
        }
        // A file that is being made has no meta record until it is finished.
        return file.metaChecksum == nil ? nil : try file.writeMeta(state)
    }

    /// The heads of the owners whose streams moved.
    var heads: [SyncID: OwnerHeads] { owners.mapValues(\.heads) }
}

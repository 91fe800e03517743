import RecordStore
import SyncModel

/// An applied change as the columns of `weir_applied_changes`, behind the device's number.
package struct AppliedChangeColumns {
    /// 16 bytes.
    package let changeID: [UInt8]
    /// 16 bytes.
    package let content: [UInt8]
    package let timeStamp: Int64
    /// 0 where there was nothing to delete.
    package let version: Int64
    /// Whether the values were stored in a row that stayed deleted.
    package let isOfTombstone: Bool
    /// The device that created the row; `nil` where there is no row, and where it is the device itself, as mostly.
    package let knowledgeID: String?

    package init(
        changeID: [UInt8], content: [UInt8], timeStamp: Int64, version: Int64, isOfTombstone: Bool,
        knowledgeID: String?
    ) {
        self.changeID = changeID
        self.content = content
        self.timeStamp = timeStamp
        self.version = version
        self.isOfTombstone = isOfTombstone
        self.knowledgeID = knowledgeID
    }

    package init(_ stored: StoredAppliedChange) {
        let change = stored.change
        let isOwn = change.knowledgeID == nil || change.knowledgeID == stored.key.device.knowledgeID
        self.init(
            changeID: change.identity.id.bytes, content: change.identity.content.bytes,
            timeStamp: change.timeStamp.rawValue, version: change.version, isOfTombstone: change.isOfTombstone,
            knowledgeID: isOwn ? nil : change.knowledgeID?.text)
    }

    /// - Throws: `corrupt` for values that no step wrote.
    package func change(of device: DeviceKey) throws(RecordStoreError) -> AppliedChange {
        guard let id = ShortDigest(changeID), let content = ShortDigest(content),
            let timeStamp = TimeStamp(rawValue: timeStamp), version >= 0
        else { throw .corrupt("weir_applied_changes has a value out of range") }
        var creator: KnowledgeID? = version == 0 ? nil : device.device.knowledgeID
        if let knowledgeID {
            guard let other = KnowledgeID(knowledgeID) else {
                throw .corrupt("weir_applied_changes has an invalid knowledge_id")
            }
            creator = other
        }
        return AppliedChange(
            identity: ChangeIdentity(id: id, content: content), timeStamp: timeStamp, version: version,
            knowledgeID: creator, isOfTombstone: isOfTombstone)
    }
}

/// Collects applied changes and passes them on in chunks.
package struct AppliedChangeChunks {
    /// About 200 KB.
    private static let maximumCount = 1000

    private let body: ([StoredAppliedChange]) throws -> Void
    private var changes: [StoredAppliedChange] = []

    package init(_ body: @escaping ([StoredAppliedChange]) throws -> Void) { self.body = body }

    package mutating func append(_ change: StoredAppliedChange) throws {
        changes.append(change)
        if changes.count == Self.maximumCount { try flush() }
    }

    /// Passes on what is left.
    package mutating func flush() throws {
        try Task.checkCancellation()
        if !changes.isEmpty { try body(changes) }
        changes.removeAll(keepingCapacity: true)
    }
}

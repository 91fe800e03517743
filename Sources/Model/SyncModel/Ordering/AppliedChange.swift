/// An applied change that had a `changeId`; kept permanently.
///
/// Refused and conflicting changes leave none, and neither do those of an aborted part.
package struct AppliedChange: Sendable, Hashable {
    package let identity: ChangeIdentity
    /// Of the version that the change wrote, or of the tombstone that it found; zero where there was nothing to delete.
    package let timeStamp: TimeStamp
    /// Zero where there was nothing to delete.
    package let version: Int64
    /// The device that created the row; `nil` where there was nothing to delete.
    package let knowledgeID: KnowledgeID?
    /// Whether the values were stored and the row stayed deleted (I8).
    package let isOfTombstone: Bool

    package init(
        identity: ChangeIdentity, timeStamp: TimeStamp, version: Int64, knowledgeID: KnowledgeID?,
        isOfTombstone: Bool = false
    ) {
        self.identity = identity
        self.timeStamp = timeStamp
        self.version = version
        self.knowledgeID = knowledgeID
        self.isOfTombstone = isOfTombstone
    }

    /// `nil` for a change that was not applied.
    init?(_ identity: ChangeIdentity, _ status: ChangeResult.Status) {
        switch status {
        case .applied(let timeStamp, let version, let knowledgeID):
            self.init(identity: identity, timeStamp: timeStamp, version: version, knowledgeID: knowledgeID)
        case .deleted(let timeStamp, let version, let knowledgeID):
            self.init(
                identity: identity, timeStamp: timeStamp, version: version, knowledgeID: knowledgeID,
                isOfTombstone: true)
        case .conflict, .refused: return nil
        }
    }

    /// The result that the change had, which its repeats have, too.
    package var status: ChangeResult.Status {
        if isOfTombstone, let knowledgeID {
            return .deleted(timeStamp: timeStamp, version: version, knowledgeID: knowledgeID)
        }
        return .applied(timeStamp: timeStamp, version: version, knowledgeID: knowledgeID)
    }
}

/// The device, the owner and the `changeId` under which an applied change is kept.
package struct AppliedChangeKey: Sendable, Hashable {
    package let device: DeviceKey
    /// ``ChangeIdentity/id``.
    package let id: ShortDigest

    package init(device: DeviceKey, id: ShortDigest) {
        self.device = device
        self.id = id
    }
}

extension ChangePart {
    /// What a change of the part is recognized by; rules versions below 3 recognize none.
    func identity(of change: Change) -> ChangeIdentity? { rules >= 3 ? change.identity : nil }

    /// The changes that may have been applied before, with duplicates.
    package var appliedChangeKeys: [AppliedChangeKey] {
        guard rules >= 3 else { return [] }
        return changes.compactMap { change in
            change.identity.map { AppliedChangeKey(device: deviceKey, id: $0.id) }
        }
    }
}

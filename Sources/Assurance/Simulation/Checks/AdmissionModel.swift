import DeviceModel
import SyncModel

/// What ingest must make of each batch, from the edits that its device sent: the parts, their order and their changes.
final class AdmissionModel: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    private let world: World
    /// By the JSON of the batch.
    private var sent: [[UInt8]: [Edit]] = [:]
    /// The content of a batch, by its hash.
    private var contents: [[UInt8]: String] = [:]
    /// The ids and contents of changes by their hashes, and the hashes by them.
    private var identities: (texts: [ShortDigest: String], digests: [String: ShortDigest]) = ([:], [:])

    init(_ world: World) { self.world = world }

    /// Notes what a device is about to send.
    func record(_ edits: [Edit], json: String) { sent[Array(json.utf8)] = edits }

    /// Compares a part with its upload.
    func check(_ part: ChangePart, of batch: ChangeBatch) {
        guard let edits = sent[batch.changes] else {
            return world.fail(.nothingLost, "no device sent the batch of \(name(part))")
        }
        guard let schema = world.scenario.schemas[batch.schema]?.schema, edits.allSatisfy({ $0.isWritable(in: schema) })
        else { return world.fail(.rules, "\(name(part)) has columns that the schema version of its batch lacks") }
        let writable = Set(batch.grants.filter { $0.access == .write }.map(\.owner))
        func isAdmitted(_ edit: Edit) -> Bool { edit.isValid && writable.contains(edit.owner) }
        var others: [SyncID] = []
        for edit in edits
        where edit.owner != part.device.caller && isAdmitted(edit) && !others.contains(edit.owner) {
            others.append(edit.owner)
        }
        // The order is that of first appearance, also of a change that was refused.
        let appearance = edits.map(\.owner)
        others.sort { appearance.firstIndex(of: $0)! < appearance.firstIndex(of: $1)! }
        let owners = [part.device.caller] + others
        guard part.part < owners.count, part.owner == owners[part.part] else {
            return world.fail(.ownersApart, "\(name(part)) is of \(part.owner), the owners are \(owners)")
        }
        let mine = edits.enumerated().filter { $0.element.owner == part.owner }
        let admitted = mine.filter { isAdmitted($0.element) }
        guard part.changes.map(\.index) == admitted.map(\.offset) else {
            return world.fail(
                .ownersApart,
                "\(name(part)) has the changes \(part.changes.map(\.index)), not \(admitted.map(\.offset))")
        }
        for (change, (_, edit)) in zip(part.changes, admitted) where !edit.isSame(as: change) {
            world.fail(.rules, "\(name(part)) has the change \(change), sent was \(edit)")
        }
        for (change, (_, edit)) in zip(part.changes, admitted) { checkIdentity(change, edit, part) }
        if part.hasIngestRefusal != (admitted.count < mine.count) || part.isAtomic != batch.isAtomic {
            world.fail(
                .rules,
                "\(name(part)): refusals \(part.hasIngestRefusal), atomic \(part.isAtomic); \(mine.count) sent, "
                    + "\(admitted.count) admitted")
        }
        if part.maxBatchRowBytes != world.scenario.maxBatchRowBytes {
            world.fail(.limits, "\(name(part)) may touch rows of \(part.maxBatchRowBytes) bytes")
        }
        if part.maxOwnerRows != world.scenario.maxOwnerRows || part.maxOwnerBytes != world.scenario.maxOwnerBytes {
            world.fail(.limits, "\(name(part)) has a quota of \(part.maxOwnerRows) rows, \(part.maxOwnerBytes) bytes")
        }
        if part.part == 0 {
            let refused = edits.indices.filter { !isAdmitted(edits[$0]) }
            if part.summary?.changeCount != edits.count || part.summary?.otherOwners != others
                || part.summary?.refusals.map(\.index) != refused
            {
                world.fail(.rules, "\(name(part)) has the summary \(String(describing: part.summary))")
            }
        }
        let content = "\(batch.isAtomic) \(edits.map(\.content))"
        if contents.updateValue(content, forKey: part.contentHash) ?? content != content {
            world.fail(.appliedOnce, "\(name(part)) has the hash of a batch with other content")
        }
    }

    /// Ids and contents of changes have equal hashes exactly where they are equal, whatever batch they are in.
    private func checkIdentity(_ change: Change, _ edit: Edit, _ part: ChangePart) {
        guard let identity = change.identity, let id = edit.changeID else {
            if change.identity != nil || edit.changeID != nil {
                world.fail(.appliedOnce, "\(name(part)) has the change \(change), sent was \(edit)")
            }
            return
        }
        let device = part.device
        for (digest, text) in [
            (identity.id, "id \(id)"),
            (identity.content, "content \(device.caller) \(device.knowledgeID) \(edit.content)"),
        ] {
            let known = identities.texts.updateValue(text, forKey: digest) ?? text
            let before = identities.digests.updateValue(digest, forKey: text) ?? digest
            if known != text || before != digest {
                world.fail(.appliedOnce, "\(name(part)): the hash of the \(text) is that of the \(known), or another")
            }
        }
    }

    private func name(_ part: ChangePart) -> String {
        "part \(part.part) of uploads[\(part.upload.partition)] \(part.upload.offset)"
    }
}

extension Edit {
    /// Whether a change is this edit.
    fileprivate func isSame(as change: Change) -> Bool {
        change.id.text == id && change.table == table && change.isDelete == isDelete
            && change.base.rawValue == base ?? 0 && change.ifBase == ifBase
            && change.ifUnchanged == ifUnchanged && change.isForLiveRow == isForLiveRow
    }
}

import Digest
import JSON
import SyncModel

/// The content of a batch in bytes that are equal exactly when two batches are (I2).
///
/// It depends only on the request: not on grants, and on the schema version only where that decides whether a change can be
/// read, since a repeat may arrive under other grants and a newer version. Values are in canonical form, columns and tables by
/// name. Each piece is preceded by its length, and an entry begins with 1 for a change and with 2 for another element, so that
/// the encoding is unambiguous.
///
/// The hash is stored with every outcome, and that of a change with a `changeId` permanently: another encoding needs another
/// rules version.
struct BatchContent {
    private var bytes: [UInt8] = []
    /// ``RulesVersion`` of the batch.
    private let rules: Int

    init(isAtomic: Bool, rules: Int) {
        self.rules = rules
        bytes.append(isAtomic ? 1 : 0)
    }

    /// SHA-256.
    var hash: [UInt8] { SHA256.digest(of: bytes) }

    mutating func reserve(_ count: Int) { bytes.reserveCapacity(count) }

    /// Adds a change.
    ///
    /// - Returns: what a change with a `changeId` is recognized by, in any batch: the hash of its own bytes alone.
    mutating func add(
        _ change: Change, owner: SyncID, forms: IngestSchema.TableForms, values: ColumnValues, changeID: ChangeID?
    ) -> ChangeIdentity? {
        let start = bytes.count
        bytes.append(1)
        add(owner.text.utf8.span)
        add(forms.name.span)
        add(change.id.text.utf8.span)
        add(change.knowledgeID.text.utf8.span)
        bytes.append(
            (change.isDelete ? 1 : 0) | (change.ifBase ? 2 : 0) | (change.updatedAt == nil ? 0 : 4)
                | (changeID == nil ? 0 : 8) | (change.ifUnchanged ? 16 : 0)
                | (change.isForLiveRow ? 32 : 0))
        add(UInt64(change.base.rawValue))
        add(UInt64(bitPattern: change.updatedAt ?? 0))
        if !values.ranges.isEmpty {
            for (position, name) in forms.byName where !values.ranges[position].isEmpty {
                add(name.span)
                add(values.bytes.span.extracting(values.ranges[position]))
            }
        }
        // No column's name is empty, so an empty one ends the columns.
        add(0)
        guard let changeID else { return nil }
        add(changeID.text.utf8.span)
        let digest = SHA256.digest(of: changeID.text.utf8.span.bytes)
        return ChangeIdentity(
            id: rules >= 6
                ? ShortDigest(ofID: changeID.text.utf8.span, digest: digest) : ShortDigest(prefixOf: digest),
            content: ShortDigest(prefixOf: SHA256.digest(of: bytes.span.bytes.extracting(droppingFirst: start))))
    }

    /// Adds an element that is not a change, as sent except for white space, escapes and the order of members.
    mutating func add(refused element: borrowing JSONValue) {
        bytes.append(2)
        var sorted: [UInt8] = []
        element.appendSorted(to: &sorted)
        add(sorted.span)
    }

    private mutating func add(_ piece: Span<UInt8>) {
        add(UInt64(piece.count))
        bytes.append(piece)
    }

    /// Seven bits a byte, the lowest first; the last byte is below 128.
    private mutating func add(_ number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}

import Digest
import JSON
import SyncModel

/// What a batch says, spelled so that two batches say the same exactly when their bytes are equal (I2).
///
/// It depends on nothing but the request: not on grants, and on the schema version only where that decides whether a change
/// can be read, since a repeat may come under other grants and a newer version. Values count in canonical form, columns and
/// tables by their names. Each piece has its length before it, and an entry for a change begins with 1, for another element
/// with 2, so that no two contents have the same bytes.
///
/// The hash is kept with every outcome: another spelling here needs another rules version.
struct BatchContent {
    private var bytes: [UInt8] = []

    init(isAtomic: Bool) { bytes.append(isAtomic ? 1 : 0) }

    /// SHA-256 of it all.
    var hash: [UInt8] { SHA256.digest(of: bytes) }

    /// Makes room for a batch of a size in JSON.
    mutating func reserve(_ count: Int) { bytes.reserveCapacity(count) }

    /// Adds a change that was read, with its values.
    mutating func add(_ change: Change, owner: SyncID, forms: IngestSchema.TableForms, values: ColumnValues) {
        bytes.append(1)
        add(owner.text.utf8.span)
        add(forms.name.span)
        add(change.id.text.utf8.span)
        add(change.knowledgeID.text.utf8.span)
        bytes.append((change.isDelete ? 1 : 0) | (change.ifBase ? 2 : 0) | (change.updatedAt == nil ? 0 : 4))
        add(UInt64(change.base.rawValue))
        add(UInt64(bitPattern: change.updatedAt ?? 0))
        if !values.places.isEmpty {
            for (position, name) in forms.byName where !values.places[position].isEmpty {
                add(name.span)
                add(values.bytes.span.extracting(values.places[position]))
            }
        }
        // No column's name is empty, so this ends the columns.
        add(0)
    }

    /// Adds an element that is no change, as it is spelled but for white space, escapes and the order of members.
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

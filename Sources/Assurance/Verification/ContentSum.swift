import Digest
import RecordStore
import SyncModel
import SyncWire

/// A hash of many entries that does not depend on their order: the sum of the entries' SHA-256, modulo 2^256.
///
/// Stores may return rows in any order, and no row has to be kept: two sets with the same sum and count count as equal. This
/// finds faults; it does not protect against chosen entries.
struct ContentSum: Sendable, Hashable {
    private(set) var count = 0
    private var words: [UInt64] = [0, 0, 0, 0]

    /// - Parameter digest: the SHA-256 of the entry.
    mutating func add(_ digest: [UInt8]) {
        count += 1
        var carry: UInt64 = 0
        for index in 0..<4 {
            var word: UInt64 = 0
            for byte in digest[(index * 8)..<(index * 8 + 8)].reversed() { word = word << 8 | UInt64(byte) }
            let (sum, first) = words[index].addingReportingOverflow(word)
            let (total, second) = sum.addingReportingOverflow(carry)
            words[index] = total
            carry = (first ? 1 : 0) + (second ? 1 : 0)
        }
    }

    /// In hexadecimal.
    var text: String {
        hexadecimal(words.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * UInt64($0))) } })
    }
}

/// The SHA-256 of rows and outcomes, whose fields are preceded by their lengths: different entries have different bytes.
struct EntryHash {
    private var bytes: [UInt8] = []

    mutating func row(_ row: OrderedRow) -> [UInt8] {
        bytes.removeAll(keepingCapacity: true)
        append(Int64(row.key.table))
        append(row.key.owner.text)
        append(row.key.id.text)
        append(row.knowledgeID.text)
        for number in [row.timeStamp.rawValue, row.version, row.createdAt, row.updatedAt] { append(number) }
        append(row.isDeleted ? 1 : 0)
        append(row.writer.caller.text)
        append(row.writer.knowledgeID.text)
        append(row.writerBatch ?? 0)
        append(row.isExact ? 1 : 0)
        append(row.othersTimeStamp.rawValue)
        append(Int64(row.values.bytes.count))
        bytes += row.values.bytes
        return finish()
    }

    mutating func outcome(_ stored: KeptOutcome) -> [UInt8] {
        bytes.removeAll(keepingCapacity: true)
        append(stored.key.owner.text)
        append(stored.key.device.caller.text)
        append(stored.key.device.knowledgeID.text)
        append(stored.highestBatch)
        let encoded = stored.outcome.encode()
        append(Int64(encoded.count))
        bytes += encoded
        return finish()
    }

    mutating func usage(_ stored: StoredUsage) -> [UInt8] {
        bytes.removeAll(keepingCapacity: true)
        append(stored.owner.text)
        let usage = stored.usage
        for number in [usage.rows, usage.bytes, usage.deletedRows, usage.deletedBytes] { append(number) }
        return finish()
    }

    mutating func appliedChange(_ stored: StoredAppliedChange) -> [UInt8] {
        bytes.removeAll(keepingCapacity: true)
        append(stored.key.owner.text)
        append(stored.key.device.caller.text)
        append(stored.key.device.knowledgeID.text)
        let change = stored.change
        bytes += change.identity.id.bytes
        bytes += change.identity.content.bytes
        append(change.timeStamp.rawValue)
        append(change.version)
        append(change.isOfTombstone ? 1 : 0)
        append(change.knowledgeID?.text ?? "")
        return finish()
    }

    private func finish() -> [UInt8] {
        SHA256.digest(of: bytes)
    }

    private mutating func append(_ number: Int64) {
        for shift in stride(from: 0, to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: number >> Int64(shift))) }
    }

    private mutating func append(_ text: String) {
        append(Int64(text.utf8.count))
        bytes += text.utf8
    }
}

/// A kept outcome, with the highest batch of its device.
struct KeptOutcome: Sendable {
    let key: DeviceKey
    let outcome: Outcome
    let highestBatch: Int64
}

import FanOutLink
import Metrics
import SyncModel

/// Which rows of an owner's stream a device lacks, and its vector afterwards, computed from heads alone (I6, I7).
///
/// The answer's entries contain every device of the request, and those others whose entry is above the request's floor.
/// The floor remains the entry of all other devices, so the vector is exact and minimal. The floor itself is not an
/// entry here; the gateway repeats it in the answer.
///
/// Where that would be more entries than the answer may have, a higher floor replaces them: rows come in timeStamp
/// order, so a device has everything up to the last row sent.
struct PullPlan {
    /// A device with rows above the vector's entry, read with a search of its own.
    struct Source: Hashable {
        /// The number in the file.
        let device: Int64
        /// The vector's entry; rows above it are missing on the device.
        let from: TimeStamp
        /// The newest of the device's rows.
        let head: TimeStamp
    }

    /// The range of the index by time that has the missing rows of all other devices.
    struct Scan {
        /// No missing row is at or below.
        var from: TimeStamp
        /// The newest of their rows.
        var head: TimeStamp
    }

    /// More named entries are not searched one by one: their rows are found in the index by time, too.
    ///
    /// 1024: some milliseconds. Vectors this long are replaced by floors (``OwnerPull/maximumEntries``), so only a request
    /// that is longer than the answers were reads the index past rows that the device has.
    static let maximumSearches = 1024

    /// About as many devices are compared in the time in which one is read from the file.
    private static let devicesPerLookup = 100

    let knowledge: OwnerKnowledge
    let heads: OwnerHeads
    /// By knowledgeId.
    let sources: [Source]
    /// `nil` when no device in the index by time has missing rows.
    let scan: Scan?
    /// The entries of named devices in the index by time; `.maximum` for those that ``sources`` cover.
    private let scanned: [Int64: TimeStamp]
    private let passed: TimeStamp
    /// Counts the devices that are looked at.
    private let compared: Counter?

    /// Whether a plan looks at every device, about a millisecond for 30,000: only where some are named, and others may have news.
    static func comparesAll(_ knowledge: OwnerKnowledge, _ heads: OwnerHeads) -> Bool {
        !knowledge.entries.isEmpty && heads.head > knowledge.floor
    }

    /// - Parameters:
    ///   - passed: a timeStamp up to which an earlier step of the same pull found no missing row in the index by time.
    ///   - compared: counts the devices that are looked at.
    init(
        _ knowledge: OwnerKnowledge, heads: OwnerHeads, passed: TimeStamp = .zero, compared: Counter? = nil
    ) {
        self.knowledge = knowledge
        self.heads = heads
        self.passed = passed
        self.compared = compared
        var sources: [Source] = []
        var scan: Scan?
        var scanned: [Int64: TimeStamp] = [:]
        let hasEntries = !knowledge.entries.isEmpty
        // Depends on the request alone, so that every step of a pull decides alike.
        let searchesNamed = knowledge.entries.count <= Self.maximumSearches
        func compare(_ device: OwnerHeads.DeviceHead) {
            let entry = hasEntries ? knowledge.entries[device.knowledgeID] : nil
            let from = entry ?? knowledge.floor
            let isSearched = !device.isIndexed || searchesNamed && entry != nil
            if let entry, device.isIndexed { scanned[device.number] = isSearched ? .maximum : entry }
            guard device.head > from else { return }
            if isSearched {
                sources.append(Source(device: device.number, from: from, head: device.head))
            } else {
                let first = max(from, TimeStamp(device.indexedFrom.rawValue - 1), passed)
                scan = Scan(from: min(first, scan?.from ?? first), head: max(device.head, scan?.head ?? .zero))
            }
        }
        if Self.comparesAll(knowledge, heads) {
            for device in heads.devices { compare(device) }
            compared?.add(heads.devices.count)
        } else if hasEntries {
            let named = Self.named(knowledge, heads)
            for device in named { compare(device) }
            compared?.add(named.count)
        } else if heads.head > knowledge.floor {
            for device in heads.unindexed { if let head = heads[device] { compare(head) } }
            compared?.add(heads.unindexed.count)
            // Every row of the index above the floor is missing.
            if heads.indexedHead > knowledge.floor {
                let first = TimeStamp(heads.indexedFrom.rawValue - 1)
                scan = Scan(from: max(knowledge.floor, first, passed), head: heads.indexedHead)
            }
        }
        self.sources = sources
        self.scan = scan
        self.scanned = scanned
    }

    /// The devices with rows that the vector names, by knowledgeId.
    private static func named(_ knowledge: OwnerKnowledge, _ heads: OwnerHeads) -> DeviceHeads {
        DeviceHeads(knowledge.entries.keys.compactMap { heads[$0] })
    }

    /// Whether the device lacks no row.
    var isEmpty: Bool { sources.isEmpty && scan == nil }

    /// Whether a row of the index by time is missing on the device, and not covered by ``sources``.
    func isScanned(_ device: Int64, at timeStamp: TimeStamp) -> Bool {
        timeStamp > scanned[device] ?? knowledge.floor
    }

    /// Whether the newest row of every device in the scan was passed, as it must be at the end.
    ///
    /// - Parameter rows: the last row of each device.
    func isScanComplete(_ rows: [Int64: TimeStamp]) -> Bool {
        guard scan != nil else { return true }
        compared?.add(heads.devices.count)
        return heads.devices.allSatisfy { device in
            !device.isIndexed || device.head <= passed || !isScanned(device.number, at: device.head)
                || rows[device.number] == device.head
        }
    }

    /// The vector of a drained device: for every creating device the greater of the sent entry and the head.
    ///
    /// - Parameter maximum: of the entries; where there were more, a floor replaces all of them.
    func drained(maximum: Int) -> (entries: [OwnerRows.Entry], floor: TimeStamp?) {
        // A floor at the head hides all others.
        let devices = heads.head > knowledge.floor ? heads.devices : Self.named(knowledge, heads)
        compared?.add(devices.count)
        var entries: [OwnerRows.Entry] = []
        entries.reserveCapacity(min(max(devices.count, knowledge.entries.count), maximum))
        var named = 0
        for device in devices {
            if let sent = knowledge.entries[device.knowledgeID] {
                entries.append((device.knowledgeID, max(sent, device.head)))
                named += 1
            } else if device.head > knowledge.floor {
                entries.append((device.knowledgeID, device.head))
            }
            if entries.count > maximum { return ([], max(heads.head, knowledge.highest)) }
        }
        if named < knowledge.entries.count {
            for (device, sent) in knowledge.entries where heads[device] == nil { entries.append((device, sent)) }
            if entries.count > maximum { return ([], max(heads.head, knowledge.highest)) }
            entries.sort { $0.device < $1.device }
        }
        return (entries, nil)
    }

    /// The vector after a cut page: the entries sent, and for each device the last row that the page passed.
    ///
    /// - Parameters:
    ///   - passed: for each device its last row up to the last row sent.
    ///   - last: the last row sent; `nil` when there is none.
    ///   - maximum: of the entries; where there were more, the last row sent is the floor, and entries above it remain.
    ///   - name: the id of a device by its number, where `passed` has few of many devices.
    func cut(
        _ passed: [Int64: TimeStamp], last: TimeStamp?, maximum: Int, name: (Int64) throws -> KnowledgeID
    ) rethrows -> (entries: [OwnerRows.Entry], floor: TimeStamp?) {
        // Below the request's floor only named devices have missing rows, and their entries remain necessary.
        let floor = last.flatMap { $0 >= knowledge.floor ? $0 : nil }
        if let floor, passed.count > maximum { return (aboveFloor(floor), floor) }
        var known = knowledge.entries
        if passed.count * Self.devicesPerLookup < heads.devices.count {
            for (device, timeStamp) in passed { known[try name(device)] = timeStamp }
        } else if !passed.isEmpty {
            compared?.add(heads.devices.count)
            for device in heads.devices {
                if let timeStamp = passed[device.number] { known[device.knowledgeID] = timeStamp }
            }
        }
        if let floor, known.count > maximum { return (aboveFloor(floor), floor) }
        return (Self.sorted(known), nil)
    }

    private func aboveFloor(_ floor: TimeStamp) -> [OwnerRows.Entry] {
        Self.sorted(knowledge.entries.filter { $0.value > floor })
    }

    /// The vector after a page that has none of the owner's rows.
    static func asSent(_ knowledge: OwnerKnowledge) -> [OwnerRows.Entry] { sorted(knowledge.entries) }

    private static func sorted(_ entries: [KnowledgeID: TimeStamp]) -> [OwnerRows.Entry] {
        entries.map { (device: $0.key, timeStamp: $0.value) }.sorted { $0.device < $1.device }
    }
}

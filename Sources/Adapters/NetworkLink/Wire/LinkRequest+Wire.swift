import FanOutLink
import SyncModel
import SyncWire

/// `weir.v1.LinkPull` (link.proto).
extension PagePull {
    init(link reader: inout WireReader) throws(WireError) {
        self.init(owners: [], limit: 0, maximumBytes: 0)
        while let field = try reader.next() {
            switch field.number {
            case 1: owners.append(try reader.message(field, OwnerPull.init(link:)))
            case 2: limit = try reader.count(field)
            case 3: maximumBytes = Int(try reader.signed(field))
            case 4: isContinued = try reader.flag(field)
            default: try reader.skip(field)
            }
        }
    }

    func writeLink(to writer: inout WireWriter) {
        for owner in owners { writer.message(1) { owner.writeLink(to: &$0) } }
        writer.number(2, min(max(limit, 0), Int(Int32.max)))
        writer.signed(3, Int64(maximumBytes))
        writer.flag(4, isContinued)
    }
}

/// `weir.v1.LinkOwnerPull` (link.proto).
extension OwnerPull {
    init(link reader: inout WireReader) throws(WireError) {
        var owner: SyncID?
        var knowledge = OwnerKnowledge()
        var held: Set<TimeStamp> = []
        var leastHead = TimeStamp.zero
        var maximumEntries = Int.max
        while let field = try reader.next() {
            switch field.number {
            case 1: owner = try reader.id(field)
            case 2: knowledge.givenFloor = try reader.timeStamp(field)
            case 3:
                let (device, timeStamp) = try reader.entry(field)
                guard knowledge.entries.updateValue(timeStamp, forKey: device) == nil else {
                    throw reader.failure(.repeated, field)
                }
            case 4: held.insert(try reader.timeStamp(field))
            case 5: knowledge.cutFrom = try reader.timeStamp(field)
            case 6: leastHead = try reader.timeStamp(field)
            case 7: maximumEntries = try reader.count(field)
            default: try reader.skip(field)
            }
        }
        guard let owner else { throw reader.missing(1) }
        self.init(owner: owner, knowledge: knowledge, held: held, leastHead: leastHead, maximumEntries: maximumEntries)
    }

    func writeLink(to writer: inout WireWriter) {
        writer.id(1, owner)
        writer.present(2, knowledge.givenFloor?.rawValue)
        // In any order, but the same in both passes: the writer measures the bytes before it writes them.
        for (device, timeStamp) in knowledge.entries { writer.entry(3, device, timeStamp) }
        for timeStamp in held.sorted() { writer.present(4, timeStamp.rawValue) }
        writer.present(5, knowledge.cutFrom?.rawValue)
        writer.timeStamp(6, leastHead)
        if maximumEntries != .max { writer.present(7, Int64(min(max(maximumEntries, 0), Int(Int32.max)))) }
    }
}

/// `weir.v1.LinkPart` (link.proto).
extension PartReference {
    init(link reader: inout WireReader) throws(WireError) {
        var (partition, part) = (0, 0)
        var offset: Int64 = 0
        var key: DeviceKey?
        var batch: Int64?
        while let field = try reader.next() {
            switch field.number {
            case 1: partition = try reader.count(field)
            case 2: offset = try reader.number(field)
            case 3: part = try reader.count(field)
            case 4: key = try reader.message(field, DeviceKey.init(link:))
            case 5: batch = try reader.number(field)
            default: try reader.skip(field)
            }
        }
        guard let key else { throw reader.missing(4) }
        self.init(
            upload: UploadReference(partition: partition, offset: offset), part: part, key: key, batch: batch)
    }

    func writeLink(to writer: inout WireWriter) {
        writer.number(1, upload.partition)
        writer.number(2, upload.offset)
        writer.number(3, part)
        writer.message(4) { key.writeLink(to: &$0) }
        writer.present(5, batch)
    }
}

/// `weir.v1.LinkRowWindow` (link.proto).
extension RowWindow {
    init(link reader: inout WireReader) throws(WireError) {
        self.init(maximumBytes: 0)
        while let field = try reader.next() {
            switch field.number {
            case 1: from = try reader.count(field)
            case 2: end = try reader.count(field)
            case 3: maximumBytes = Int(try reader.number(field))
            default: try reader.skip(field)
            }
        }
    }

    func writeLink(to writer: inout WireWriter) {
        writer.number(1, from)
        if end < .max { writer.present(2, Int64(end)) }
        writer.number(3, max(maximumBytes, 0))
    }
}

/// `weir.v1.LinkDeviceKey` (link.proto).
extension DeviceKey {
    init(link reader: inout WireReader) throws(WireError) {
        var owner: SyncID?
        var caller: SyncID?
        var knowledgeID: KnowledgeID?
        while let field = try reader.next() {
            switch field.number {
            case 1: owner = try reader.id(field)
            case 2: caller = try reader.id(field)
            case 3: knowledgeID = try reader.device(field)
            default: try reader.skip(field)
            }
        }
        guard let owner else { throw reader.missing(1) }
        guard let caller else { throw reader.missing(2) }
        guard let knowledgeID else { throw reader.missing(3) }
        self.init(owner: owner, device: Device(caller: caller, knowledgeID: knowledgeID))
    }

    func writeLink(to writer: inout WireWriter) {
        writer.id(1, owner)
        writer.id(2, device.caller)
        writer.id(3, device.knowledgeID)
    }
}

extension WireReader {
    /// `LinkEntry`.
    mutating func entry(_ field: Field) throws(WireError) -> (device: KnowledgeID, timeStamp: TimeStamp) {
        try message(field) { (inner) throws(WireError) in
            var device: KnowledgeID?
            var timeStamp = TimeStamp.zero
            while let field = try inner.next() {
                switch field.number {
                case 1: device = try inner.device(field)
                case 2: timeStamp = try inner.timeStamp(field)
                default: try inner.skip(field)
                }
            }
            guard let device else { throw inner.missing(1) }
            return (device, timeStamp)
        }
    }
}

extension WireWriter {
    /// `LinkEntry`.
    mutating func entry(_ field: Int, _ device: KnowledgeID, _ timeStamp: TimeStamp) {
        message(field) { writer in
            writer.id(1, device)
            writer.timeStamp(2, timeStamp)
        }
    }
}

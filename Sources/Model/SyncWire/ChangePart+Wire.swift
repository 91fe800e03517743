import SyncModel

/// `weir.v1.ChangePart`, the message of `changes` (changes.proto).
extension ChangePart: WireDecodable {
    package init(from reader: inout WireReader) throws(WireError) {
        try reader.requireFormat()
        // Changes omit values that equal the part's, and fields may be in any order: the part's own fields are read
        // first.
        var header = reader
        var changeCount = 0
        self = try ChangePart(header: &header, changeCount: &changeCount)
        changes.reserveCapacity(changeCount)
        while let field = try reader.next() {
            guard field.number == 15 else {
                try reader.skip(field)
                continue
            }
            let device = device.knowledgeID
            let change = try reader.message(field) { (inner) throws(WireError) in
                try Change(from: &inner, device: device)
            }
            changes.append(change)
        }
    }

    /// Reads everything except the changes, which are counted.
    private init(header reader: inout WireReader, changeCount: inout Int) throws(WireError) {
        var epoch: String?
        var rules: Int64?
        var schema: String?
        var uploadPartition = 0
        var uploadOffset: Int64 = 0
        var logTime: Int64 = 0
        var part = 0
        var owner: SyncID?
        var caller: SyncID?
        var knowledgeID: KnowledgeID?
        var batch: Int64?
        var contentHash: [UInt8]?
        var isAtomic = false
        var hasIngestRefusal = false
        var hasOtherEpoch = false
        var limits = OutcomeLimits()
        var summary: BatchSummary?
        while let field = try reader.next() {
            switch field.number {
            case 1: try reader.format(field)
            case 2: epoch = try reader.name(field)
            case 3: rules = try reader.positive(field, upTo: Int64(Int32.max))
            case 4: schema = try reader.schemaHash(field)
            case 5: uploadPartition = try reader.count(field)
            case 6: uploadOffset = try reader.number(field)
            case 7: logTime = try reader.signed(field)
            case 8: part = try reader.count(field)
            case 9: owner = try reader.id(field)
            case 10: caller = try reader.id(field)
            case 11: knowledgeID = try reader.device(field)
            case 12: batch = try reader.positive(field)
            case 13: contentHash = try reader.contentHash(field)
            case 14: isAtomic = try reader.flag(field)
            case 15:
                try reader.skip(field)
                changeCount += 1
            case 16: hasIngestRefusal = try reader.flag(field)
            case 17: hasOtherEpoch = try reader.flag(field)
            case 18: _ = try reader.buffer(field)
            case 19:
                guard summary == nil else { throw reader.failure(.repeated, field) }
                summary = try reader.message(field, BatchSummary.init(from:))
            case 20:
                limits.maxRowBytes = Int(try reader.positive(field, upTo: Int64(OutcomeLimits.greatest.maxRowBytes)))
            case 21:
                let greatest = Int64(OutcomeLimits.greatest.maxBatchRowBytes)
                limits.maxBatchRowBytes = Int(try reader.positive(field, upTo: greatest))
            case 22:
                limits.maxOwnerRows = Int(try reader.number(field, upTo: Int64(OutcomeLimits.greatest.maxOwnerRows)))
            case 23:
                limits.maxOwnerBytes = Int(try reader.number(field, upTo: Int64(OutcomeLimits.greatest.maxOwnerBytes)))
            default: try reader.skip(field)
            }
        }
        guard let epoch else { throw reader.missing(2) }
        guard let rules else { throw reader.missing(3) }
        guard let schema else { throw reader.missing(4) }
        guard let owner else { throw reader.missing(9) }
        guard let caller else { throw reader.missing(10) }
        guard let knowledgeID else { throw reader.missing(11) }
        guard let contentHash else { throw reader.missing(13) }
        self.init(
            epoch: epoch, rules: Int(rules), schema: schema,
            upload: UploadReference(partition: uploadPartition, offset: uploadOffset), logTime: logTime, part: part,
            owner: owner, device: Device(caller: caller, knowledgeID: knowledgeID), batch: batch,
            contentHash: contentHash, isAtomic: isAtomic, hasIngestRefusal: hasIngestRefusal,
            hasOtherEpoch: hasOtherEpoch, maxRowBytes: limits.maxRowBytes, maxBatchRowBytes: limits.maxBatchRowBytes,
            maxOwnerRows: limits.maxOwnerRows, maxOwnerBytes: limits.maxOwnerBytes, changes: [], summary: summary)
    }

    /// The record of `changes`.
    ///
    /// Equal parts have equal bytes.
    ///
    /// - Parameter schema: the part's schema version, which has all tables of the changes. Their names are included for
    ///   readers without the schema.
    package func encode(naming schema: Schema) -> [UInt8] {
        var names = TableNames(schema)
        for change in changes { names.insert(change.table) }
        return WireWriter.encode { write(to: &$0, names: names) }
    }

    private func write(to writer: inout WireWriter, names: TableNames) {
        writer.number(1, WireFormat.current)
        writer.text(2, epoch)
        writer.number(3, rules)
        writer.text(4, schema)
        writer.number(5, upload.partition)
        writer.number(6, upload.offset)
        writer.signed(7, logTime)
        writer.number(8, part)
        writer.id(9, owner)
        writer.id(10, device.caller)
        writer.id(11, device.knowledgeID)
        writer.present(12, batch)
        writer.bytes(13, contentHash)
        writer.flag(14, isAtomic)
        let device = device.knowledgeID
        for change in changes { writer.message(15) { change.write(to: &$0, device: device) } }
        writer.flag(16, hasIngestRefusal)
        writer.flag(17, hasOtherEpoch)
        names.write(to: &writer, field: 18)
        if let summary { writer.message(19) { summary.write(to: &$0) } }
        let standard = OutcomeLimits()
        if maxRowBytes != standard.maxRowBytes { writer.number(20, maxRowBytes) }
        if maxBatchRowBytes != standard.maxBatchRowBytes { writer.number(21, maxBatchRowBytes) }
        if maxOwnerRows != standard.maxOwnerRows { writer.present(22, Int64(maxOwnerRows)) }
        if maxOwnerBytes != standard.maxOwnerBytes { writer.present(23, Int64(maxOwnerBytes)) }
    }
}

/// `weir.v1.Change`.
extension Change {
    init(from reader: inout WireReader, device: KnowledgeID) throws(WireError) {
        var index = 0
        var table = 0
        var id: RowID?
        var knowledgeID = device
        var isDelete = false
        var values: RowValues?
        var base = TimeStamp.zero
        var ifBase = false
        var ifUnchanged = false
        var isForLiveRow = false
        var updatedAt: Int64?
        var isAltered = false
        var changeID: ShortDigest?
        var content: ShortDigest?
        while let field = try reader.next() {
            switch field.number {
            case 1: index = try reader.count(field)
            case 2: table = try reader.count(field)
            case 3: id = try reader.id(field)
            case 4: knowledgeID = try reader.device(field)
            case 5: isDelete = try reader.flag(field)
            case 6:
                guard values == nil else { throw reader.failure(.repeated, field) }
                values = try reader.values(field)
            case 7: base = try reader.timeStamp(field)
            case 8: ifBase = try reader.flag(field)
            case 9: updatedAt = try reader.signed(field)
            case 10: isAltered = try reader.flag(field)
            case 11: changeID = try reader.shortDigest(field)
            case 12: content = try reader.shortDigest(field)
            case 13: ifUnchanged = try reader.flag(field)
            case 14: isForLiveRow = try reader.flag(field)
            default: try reader.skip(field)
            }
        }
        guard let id else { throw reader.missing(3) }
        var identity: ChangeIdentity?
        if changeID != nil || content != nil {
            guard let changeID else { throw reader.missing(11) }
            guard let content else { throw reader.missing(12) }
            identity = ChangeIdentity(id: changeID, content: content)
        }
        self.init(
            index: index, table: table, id: id, knowledgeID: knowledgeID, isDelete: isDelete,
            values: values ?? RowValues(), base: base, ifBase: ifBase, isForLiveRow: isForLiveRow,
            ifUnchanged: ifUnchanged,
            updatedAt: updatedAt, isAltered: isAltered, identity: identity)
    }

    @inline(__always)
    func write(to writer: inout WireWriter, device: KnowledgeID) {
        writer.number(1, index)
        writer.number(2, table)
        writer.id(3, id)
        if knowledgeID != device { writer.id(4, knowledgeID) }
        writer.flag(5, isDelete)
        writer.bytes(6, values.bytes)
        writer.timeStamp(7, base)
        writer.flag(8, ifBase)
        writer.presentSigned(9, updatedAt)
        writer.flag(10, isAltered)
        if let identity {
            writer.bytes(11, identity.id.bytes)
            writer.bytes(12, identity.content.bytes)
        }
        writer.flag(13, ifUnchanged)
        writer.flag(14, isForLiveRow)
    }
}

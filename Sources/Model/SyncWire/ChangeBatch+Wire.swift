import SyncModel

/// `weir.v1.ChangeBatch`, the message of `uploads` (uploads.proto).
extension ChangeBatch: WireEncodable, WireDecodable {
    package init(from reader: inout WireReader) throws(WireError) {
        try reader.requireFormat()
        var epoch = ""
        var rules = 1
        var schema: String?
        var caller: SyncID?
        var knowledgeID: KnowledgeID?
        var batch: Int64?
        var isAtomic = false
        var grants: [Grant] = []
        var changes: [UInt8] = []
        var limits = OutcomeLimits()
        while let field = try reader.next() {
            switch field.number {
            case 1: try reader.format(field)
            case 2: epoch = try reader.text(field, maximumLength: 255)
            case 3: rules = max(1, try reader.count(field))
            case 4: schema = try reader.schemaHash(field)
            case 5: caller = try reader.id(field)
            case 6: knowledgeID = try reader.device(field)
            case 7: batch = try reader.positive(field)
            case 8: isAtomic = try reader.flag(field)
            case 9: grants.append(try reader.message(field, Grant.init(from:)))
            case 10: changes = try reader.bytes(field)
            case 11: limits = try reader.message(field, OutcomeLimits.init(from:))
            default: try reader.skip(field)
            }
        }
        guard let schema else { throw reader.missing(4) }
        guard let caller else { throw reader.missing(5) }
        guard let knowledgeID else { throw reader.missing(6) }
        guard !changes.isEmpty else { throw reader.missing(10) }
        self.init(
            epoch: epoch, rules: rules, schema: schema, device: Device(caller: caller, knowledgeID: knowledgeID),
            batch: batch, isAtomic: isAtomic, grants: grants, limits: limits, changes: changes)
    }

    package func write(to writer: inout WireWriter) {
        writer.number(1, WireFormat.current)
        writer.text(2, epoch)
        writer.number(3, rules)
        writer.text(4, schema)
        writer.id(5, device.caller)
        writer.id(6, device.knowledgeID)
        writer.present(7, batch)
        writer.flag(8, isAtomic)
        for grant in grants { writer.message(9) { grant.write(to: &$0) } }
        writer.bytes(10, changes)
        if limits != OutcomeLimits() { writer.message(11) { limits.write(to: &$0) } }
    }
}

/// `weir.v1.OutcomeLimits`.
extension OutcomeLimits {
    init(from reader: inout WireReader) throws(WireError) {
        self.init()
        while let field = try reader.next() {
            switch field.number {
            case 1: maxChanges = Int(try reader.positive(field, upTo: Int64(Self.greatest.maxChanges)))
            case 2: maxValueBytes = Int(try reader.positive(field, upTo: Int64(Self.greatest.maxValueBytes)))
            case 3: maxRowBytes = Int(try reader.positive(field, upTo: Int64(Self.greatest.maxRowBytes)))
            case 4: maxBatchRowBytes = Int(try reader.positive(field, upTo: Int64(Self.greatest.maxBatchRowBytes)))
            case 5: maxOwnerRows = Int(try reader.number(field, upTo: Int64(Self.greatest.maxOwnerRows)))
            case 6: maxOwnerBytes = Int(try reader.number(field, upTo: Int64(Self.greatest.maxOwnerBytes)))
            default: try reader.skip(field)
            }
        }
    }

    func write(to writer: inout WireWriter) {
        let standard = OutcomeLimits()
        if maxChanges != standard.maxChanges { writer.number(1, maxChanges) }
        if maxValueBytes != standard.maxValueBytes { writer.number(2, maxValueBytes) }
        if maxRowBytes != standard.maxRowBytes { writer.number(3, maxRowBytes) }
        if maxBatchRowBytes != standard.maxBatchRowBytes { writer.number(4, maxBatchRowBytes) }
        // With presence: 0 is any number.
        if maxOwnerRows != standard.maxOwnerRows { writer.present(5, Int64(maxOwnerRows)) }
        if maxOwnerBytes != standard.maxOwnerBytes { writer.present(6, Int64(maxOwnerBytes)) }
    }
}

/// `weir.v1.Grant`.
extension Grant: WireEncodable, WireDecodable {
    package init(from reader: inout WireReader) throws(WireError) {
        var owner: SyncID?
        var access: Access?
        while let field = try reader.next() {
            switch field.number {
            case 1: owner = try reader.id(field)
            case 2: access = try reader.member(field)
            default: try reader.skip(field)
            }
        }
        guard let owner else { throw reader.missing(1) }
        guard let access else { throw reader.missing(2) }
        self.init(owner: owner, access: access)
    }

    package func write(to writer: inout WireWriter) {
        writer.id(1, owner)
        writer.member(2, access)
    }
}

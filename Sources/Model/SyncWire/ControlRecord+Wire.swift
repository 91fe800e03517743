import SyncModel

/// `weir.v1.Control`, the message of `control` (control.proto).
extension ControlRecord: WireEncodable, WireDecodable {
    /// The record's key: `history`, `schema/` and the ordinal, `skip` or `device`, then `/` and `name`.
    ///
    /// Unique keys keep compaction from removing a record: of two records of one ordinal the first is valid.
    ///
    /// - Parameter name: unique to the record, even when its content repeats.
    package func key(distinguishedBy name: String) -> [UInt8] {
        switch self {
        case .history: Array("history/\(name)".utf8)
        case .schema(let entry): Array("schema/\(entry.version.ordinal)/\(name)".utf8)
        case .skip: Array("skip/\(name)".utf8)
        case .device: Array("device/\(name)".utf8)
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        try reader.requireFormat()
        var record: ControlRecord?
        while let field = try reader.next() {
            switch field.number {
            case 1: try reader.format(field)
            case 2:
                guard record == nil else { throw reader.failure(.repeated, field) }
                record = .history(try reader.message(field, History.init(from:)))
            case 3:
                guard record == nil else { throw reader.failure(.repeated, field) }
                record = .schema(try reader.message(field, SchemaHistory.Entry.init(from:)))
            case 4:
                guard record == nil else { throw reader.failure(.repeated, field) }
                record = .skip(try reader.message(field, SkippedRecord.init(from:)))
            case 5:
                guard record == nil else { throw reader.failure(.repeated, field) }
                record = .device(try reader.message(field, DeviceDecision.init(from:)))
            default: try reader.skip(field)
            }
        }
        guard let record else { throw reader.missing(2) }
        self = record
    }

    package func write(to writer: inout WireWriter) {
        writer.number(1, WireFormat.current)
        switch self {
        case .history(let history): writer.message(2) { history.write(to: &$0) }
        case .schema(let entry): writer.message(3) { entry.write(to: &$0) }
        case .skip(let skipped): writer.message(4) { skipped.write(to: &$0) }
        case .device(let decision): writer.message(5) { decision.write(to: &$0) }
        }
    }
}

/// `weir.v1.History`.
extension History: WireEncodable, WireDecodable {
    package init(from reader: inout WireReader) throws(WireError) {
        var epoch: String?
        var partitions: Int64?
        var partitionFunction: String?
        var clock = TimeStampClock.logTime
        var pieceSize: Int64?
        var shards: Int64 = 1
        var recordSize: Int64 = 32 << 20
        while let field = try reader.next() {
            switch field.number {
            case 1: epoch = try reader.name(field)
            case 2: partitions = try reader.positive(field, upTo: Int64(Int32.max))
            case 3: partitionFunction = try reader.name(field)
            case 4: clock = .sequence(first: try reader.timeStamp(field).rawValue)
            case 5: pieceSize = try reader.positive(field, upTo: Int64(Int32.max))
            case 6: shards = try reader.positive(field, upTo: Int64(Int32.max))
            case 7: recordSize = try reader.positive(field, upTo: Int64(Int32.max))
            default: try reader.skip(field)
            }
        }
        guard let epoch else { throw reader.missing(1) }
        guard let partitions else { throw reader.missing(2) }
        guard let partitionFunction else { throw reader.missing(3) }
        guard let pieceSize else { throw reader.missing(5) }
        self.init(
            epoch: epoch, partitions: Int(partitions), partitionFunction: partitionFunction, clock: clock,
            pieceSize: Int(pieceSize), shards: Int(shards), recordSize: Int(recordSize))
    }

    package func write(to writer: inout WireWriter) {
        writer.text(1, epoch)
        writer.number(2, partitions)
        writer.text(3, partitionFunction)
        switch clock {
        case .logTime: break
        case .sequence(let first): writer.present(4, first)
        }
        writer.number(5, pieceSize)
        if shards != 1 { writer.number(6, shards) }
        writer.number(7, recordSize)
    }
}

/// `weir.v1.SchemaVersion`.
extension SchemaHistory.Entry: WireEncodable, WireDecodable {
    /// Throws when the hash is not that of the tables.
    package init(from reader: inout WireReader) throws(WireError) {
        var ordinal: Int64?
        var hash: String?
        var schema: Schema?
        while let field = try reader.next() {
            switch field.number {
            case 1: ordinal = try reader.positive(field, upTo: Int64(Int32.max))
            case 2: hash = try reader.schemaHash(field)
            case 3:
                guard schema == nil else { throw reader.failure(.repeated, field) }
                schema = try reader.message(field, Schema.init(from:))
            default: try reader.skip(field)
            }
        }
        guard let ordinal else { throw reader.missing(1) }
        guard let hash else { throw reader.missing(2) }
        guard let schema else { throw reader.missing(3) }
        guard hash.utf8.elementsEqual(SchemaVersion.hash(of: schema).utf8) else {
            throw WireError(.hashMismatch, path: [2], offset: reader.offset)
        }
        self.init(version: SchemaVersion(ordinal: Int(ordinal), hash: hash), schema: schema)
    }

    package func write(to writer: inout WireWriter) {
        writer.number(1, version.ordinal)
        writer.text(2, version.hash)
        writer.message(3) { schema.write(to: &$0) }
    }
}

/// `weir.v1.Skip`.
extension SkippedRecord: WireEncodable, WireDecodable {
    package init(from reader: inout WireReader) throws(WireError) {
        var source: Source?
        var (partition, offset, schemaVersions): (Int, Int64, Int) = (0, 0, 0)
        var reason = ""
        while let field = try reader.next() {
            switch field.number {
            case 1: source = try reader.member(field)
            case 2: partition = try reader.count(field)
            case 3: offset = try reader.number(field)
            case 4: reason = try reader.text(field, maximumLength: Self.maximumReasonLength)
            case 5: schemaVersions = try reader.count(field)
            default: try reader.skip(field)
            }
        }
        guard let source else { throw reader.missing(1) }
        guard !reason.isEmpty else { throw reader.missing(4) }
        self.init(Position(source, partition, offset: offset), reason: reason, schemaVersions: schemaVersions)
    }

    package func write(to writer: inout WireWriter) {
        writer.member(1, position.source)
        writer.number(2, position.partition)
        writer.number(3, position.offset)
        writer.text(4, reason)
        writer.number(5, schemaVersions)
    }
}

/// `weir.v1.DeviceDecision`.
extension DeviceDecision: WireEncodable, WireDecodable {
    package init(from reader: inout WireReader) throws(WireError) {
        var (caller, knowledgeID): (SyncID?, KnowledgeID?)
        var isRevoked = false
        while let field = try reader.next() {
            switch field.number {
            case 1: caller = try reader.id(field)
            case 2: knowledgeID = try reader.device(field)
            case 3: isRevoked = try reader.flag(field)
            default: try reader.skip(field)
            }
        }
        guard let caller else { throw reader.missing(1) }
        guard let knowledgeID else { throw reader.missing(2) }
        self.init(Device(caller: caller, knowledgeID: knowledgeID), isRevoked: isRevoked)
    }

    package func write(to writer: inout WireWriter) {
        writer.id(1, device.caller)
        writer.id(2, device.knowledgeID)
        writer.flag(3, isRevoked)
    }
}

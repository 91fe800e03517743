import SyncModel

/// `weir.v1.OrderedPiece`, the message of `ordered` (ordered.proto).
extension OrderedPiece: WireDecodable {
    enum Field {
        static let row = 15
        static let tableName = 19
        static let result = 20
        static let summary = 21
    }

    package init(from reader: inout WireReader) throws(WireError) {
        // Rows and results omit values that equal the piece's, and fields may be in any order: the header is read
        // first.
        var scan = reader
        let header = try OrderedPieceHeader(from: &scan)
        self = header.content
        let device = device.knowledgeID
        rows.reserveCapacity(header.rowCount)
        results.reserveCapacity(header.resultCount)
        while let field = try reader.next() {
            switch field.number {
            case Field.row:
                let row = try reader.message(field) { (inner) throws(WireError) in
                    try WrittenRow(from: &inner, of: header.content)
                }
                rows.append(row)
            case Field.result:
                let result = try reader.message(field) { (inner) throws(WireError) in
                    try ChangeResult(from: &inner, device: device)
                }
                results.append(result)
            case Field.summary:
                guard summary == nil else { throw reader.failure(.repeated, field) }
                summary = try reader.message(field, BatchSummary.init(from:))
            default: try reader.skip(field)
            }
        }
    }

    /// The record of `ordered`.
    ///
    /// Equal pieces have equal bytes.
    ///
    /// Traps for a row that the piece's own batch did not write: owner, writer and writer's batch must be the piece's.
    ///
    /// - Parameter schema: the piece's schema version, which has all tables of its rows and results. Their names are
    ///   included for readers without the schema.
    package func encode(naming schema: Schema) -> [UInt8] {
        var names = TableNames(schema)
        for written in rows {
            precondition(isOwn(written.row), "a piece has rows that its own batch wrote")
            names.insert(written.row.key.table)
        }
        for result in results { names.insert(result.table) }
        return WireWriter.encode { write(to: &$0, names: names) }
    }

    func write(to writer: inout WireWriter, names: TableNames) {
        writer.number(1, WireFormat.current)
        writer.text(2, epoch)
        writer.number(3, changesOffset)
        writer.number(4, piece)
        writer.flag(5, isLast)
        writer.text(6, schema)
        writer.number(7, upload.partition)
        writer.number(8, upload.offset)
        writer.number(9, uploadPart)
        writer.signed(10, logTime)
        writer.timeStamp(11, timeStamp)
        writer.id(12, owner)
        writer.id(13, device.caller)
        writer.id(14, device.knowledgeID)
        for row in rows { write(row, to: &writer) }
        writer.present(16, batch)
        writer.member(17, verdict)
        writer.bytes(18, contentHash)
        names.write(to: &writer, field: Field.tableName)
        for result in results { write(result, to: &writer) }
        if let summary { writer.message(Field.summary) { summary.write(to: &$0) } }
        writer.number(22, touchedBytes)
    }

    private func isOwn(_ row: OrderedRow) -> Bool {
        row.writerBatch == batch && row.writer == device && row.key.owner == owner
    }

    @inline(__always)
    func write(_ row: WrittenRow, to writer: inout WireWriter) {
        let device = device.knowledgeID
        let logTime = logTime
        writer.message(Field.row) { row.write(to: &$0, device: device, logTime: logTime) }
    }

    @inline(__always)
    func write(_ result: ChangeResult, to writer: inout WireWriter) {
        let device = device.knowledgeID
        writer.message(Field.result) { result.write(to: &$0, device: device) }
    }
}

/// `weir.v1.Row`.
extension WrittenRow {
    init(from reader: inout WireReader, of piece: OrderedPiece) throws(WireError) {
        var table = 0
        var id: RowID?
        var knowledgeID = piece.device.knowledgeID
        var timeStamp = TimeStamp.zero
        var version: Int64 = 0
        var isDeleted = false
        var createdAt = piece.logTime
        var updatedAt = piece.logTime
        var isExact = false
        var othersTimeStamp = TimeStamp.zero
        var values: RowValues?
        var before = TimeStamp.zero
        while let field = try reader.next() {
            switch field.number {
            case 1: table = try reader.count(field)
            case 2: id = try reader.id(field)
            case 3: knowledgeID = try reader.device(field)
            case 4: timeStamp = try reader.timeStamp(field)
            case 5: version = try reader.number(field)
            case 6: isDeleted = try reader.flag(field)
            case 7: createdAt = try reader.signed(field)
            case 8: updatedAt = try reader.signed(field)
            case 9: isExact = try reader.flag(field)
            case 10: othersTimeStamp = try reader.timeStamp(field)
            case 11:
                guard values == nil else { throw reader.failure(.repeated, field) }
                values = try reader.values(field)
            case 12: before = try reader.timeStamp(field)
            default: try reader.skip(field)
            }
        }
        guard let id else { throw reader.missing(2) }
        guard timeStamp > .zero else { throw reader.missing(4) }
        guard version > 0 else { throw reader.missing(5) }
        // A created row has the part's time and no version by other devices.
        let isNew = createdAt == piece.logTime && othersTimeStamp == .zero
        guard before < timeStamp, before == .zero ? isNew : version > 1 else { throw reader.outOfRange(12) }
        let row = OrderedRow(
            key: RowKey(table: table, owner: piece.owner, id: id), knowledgeID: knowledgeID, timeStamp: timeStamp,
            version: version, isDeleted: isDeleted, createdAt: createdAt, updatedAt: updatedAt, writer: piece.device,
            writerBatch: piece.batch, isExact: isExact, othersTimeStamp: othersTimeStamp,
            values: values ?? RowValues())
        self.init(row, before: before)
    }

    @inline(__always)
    func write(to writer: inout WireWriter, device: KnowledgeID, logTime: Int64) {
        writer.number(1, row.key.table)
        writer.id(2, row.key.id)
        if row.knowledgeID != device { writer.id(3, row.knowledgeID) }
        writer.timeStamp(4, row.timeStamp)
        writer.number(5, row.version)
        writer.flag(6, row.isDeleted)
        if row.createdAt != logTime { writer.presentSigned(7, row.createdAt) }
        if row.updatedAt != logTime { writer.presentSigned(8, row.updatedAt) }
        writer.flag(9, row.isExact)
        writer.timeStamp(10, row.othersTimeStamp)
        writer.bytes(11, row.values.bytes)
        writer.timeStamp(12, before)
    }
}

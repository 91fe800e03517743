import SyncModel

/// A piece without its rows, results and summary: enough to drop, count or route it without decoding them.
@dynamicMemberLookup
package struct OrderedPieceHeader: Sendable, Hashable, WireDecodable {
    /// The piece, with empty rows, results and summary.
    let content: OrderedPiece
    package let rowCount: Int
    package let resultCount: Int

    package subscript<Value>(dynamicMember member: KeyPath<OrderedPiece, Value>) -> Value { content[keyPath: member] }

    /// Skips rows, results and summary.
    package init(from reader: inout WireReader) throws(WireError) {
        try reader.requireFormat()
        var epoch: String?
        var changesOffset: Int64 = 0
        var piece = 0
        var isLast = false
        var schema: String?
        var uploadPartition = 0
        var uploadOffset: Int64 = 0
        var uploadPart = 0
        var logTime: Int64 = 0
        var timeStamp = TimeStamp.zero
        var owner: SyncID?
        var caller: SyncID?
        var knowledgeID: KnowledgeID?
        var batch: Int64?
        var verdict: OrderedPiece.Verdict?
        var contentHash: [UInt8] = []
        var touchedBytes = 0
        var rowCount = 0
        var resultCount = 0
        while let field = try reader.next() {
            switch field.number {
            case 1: try reader.format(field)
            case 2: epoch = try reader.name(field)
            case 3: changesOffset = try reader.number(field)
            case 4: piece = try reader.count(field)
            case 5: isLast = try reader.flag(field)
            case 6: schema = try reader.schemaHash(field)
            case 7: uploadPartition = try reader.count(field)
            case 8: uploadOffset = try reader.number(field)
            case 9: uploadPart = try reader.count(field)
            case 10: logTime = try reader.signed(field)
            case 11: timeStamp = try reader.timeStamp(field)
            case 12: owner = try reader.id(field)
            case 13: caller = try reader.id(field)
            case 14: knowledgeID = try reader.device(field)
            case 15:
                _ = try reader.buffer(field)
                rowCount += 1
            case 16: batch = try reader.positive(field)
            case 17: verdict = try reader.member(field)
            case 18: contentHash = try reader.contentHash(field, mayBeEmpty: true)
            case 20:
                _ = try reader.buffer(field)
                resultCount += 1
            case 19, 21: _ = try reader.buffer(field)
            case 22: touchedBytes = Int(try reader.number(field))
            default: try reader.skip(field)
            }
        }
        guard let epoch else { throw reader.missing(2) }
        guard let schema else { throw reader.missing(6) }
        guard let owner else { throw reader.missing(12) }
        guard let caller else { throw reader.missing(13) }
        guard let knowledgeID else { throw reader.missing(14) }
        guard let verdict else { throw reader.missing(17) }
        content = OrderedPiece(
            epoch: epoch, changesOffset: changesOffset, piece: piece, isLast: isLast, schema: schema,
            upload: UploadReference(partition: uploadPartition, offset: uploadOffset), uploadPart: uploadPart,
            logTime: logTime, timeStamp: timeStamp, owner: owner,
            device: Device(caller: caller, knowledgeID: knowledgeID), batch: batch, verdict: verdict,
            contentHash: contentHash, touchedBytes: touchedBytes)
        self.rowCount = rowCount
        self.resultCount = resultCount
    }
}

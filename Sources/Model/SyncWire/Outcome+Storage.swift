import SyncModel

/// `weir.v1.Outcome`, the stored outcome of a batch (storage.proto).
extension Outcome: WireEncodable, WireDecodable {
    package init(from reader: inout WireReader) throws(WireError) {
        try reader.requireFormat()
        var header = reader
        var knowledgeID: KnowledgeID?
        self = try Outcome(header: &header, knowledgeID: &knowledgeID)
        while let field = try reader.next() {
            guard field.number == 5 else {
                try reader.skip(field)
                continue
            }
            let device = knowledgeID
            let result = try reader.message(field) { (inner) throws(WireError) in
                try ChangeResult(from: &inner, device: device)
            }
            results.append(result)
        }
    }

    /// Reads everything except the results.
    private init(header reader: inout WireReader, knowledgeID: inout KnowledgeID?) throws(WireError) {
        var batch: Int64?
        var contentHash: [UInt8] = []
        var timeStamp = TimeStamp.zero
        var summary: BatchSummary?
        while let field = try reader.next() {
            switch field.number {
            case 1: try reader.format(field)
            case 2: batch = try reader.positive(field)
            case 3: contentHash = try reader.bytes(field)
            case 4: knowledgeID = try reader.device(field)
            case 6:
                guard summary == nil else { throw reader.failure(.repeated, field) }
                summary = try reader.message(field, BatchSummary.init(from:))
            case 7: timeStamp = try reader.timeStamp(field)
            default: try reader.skip(field)
            }
        }
        guard let batch else { throw reader.missing(2) }
        self.init(batch: batch, contentHash: contentHash, timeStamp: timeStamp, results: [], summary: summary)
    }

    package func write(to writer: inout WireWriter) {
        // Most rows that a batch writes have the same creating device, whose id is written once for all results.
        let written = results.lazy.filter { $0.locator == nil }.compactMap(\.knowledgeID).first
        let knowledgeID = written ?? results.lazy.compactMap(\.knowledgeID).first
        writer.number(1, WireFormat.current)
        writer.number(2, batch)
        writer.bytes(3, contentHash)
        if let knowledgeID { writer.id(4, knowledgeID) }
        for result in results { writer.message(5) { result.write(to: &$0, device: knowledgeID) } }
        if let summary { writer.message(6) { summary.write(to: &$0) } }
        writer.timeStamp(7, timeStamp)
    }
}

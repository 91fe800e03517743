import SyncModel

/// `weir.v1.DeadLetter`, the message of `dead-letters` (dead_letters.proto).
extension DeadLetter: WireEncodable, WireDecodable {
    package init(from reader: inout WireReader) throws(WireError) {
        try reader.requireFormat()
        var partition = 0
        var offset: Int64 = 0
        var logTime: Int64 = 0
        var subject: Subject?
        while let field = try reader.next() {
            switch field.number {
            case 1: try reader.format(field)
            case 2: partition = try reader.count(field)
            case 3: offset = try reader.number(field)
            case 4: logTime = try reader.signed(field)
            case 5, 6:
                guard subject == nil else { throw reader.failure(.repeated, field) }
                subject = try reader.message(field, field.number == 5 ? Self.change : Self.record)
            default: try reader.skip(field)
            }
        }
        guard let subject else { throw reader.missing(5) }
        self.init(
            upload: UploadReference(partition: partition, offset: offset), logTime: logTime, subject: subject)
    }

    package func write(to writer: inout WireWriter) {
        writer.number(1, WireFormat.current)
        writer.number(2, upload.partition)
        writer.number(3, upload.offset)
        writer.signed(4, logTime)
        switch subject {
        case .change(let device, let batch, let refusal, let json):
            writer.message(5) {
                $0.id(1, device.caller)
                $0.id(2, device.knowledgeID)
                $0.present(3, batch)
                $0.message(4) { refusal.write(to: &$0) }
                $0.bytes(5, json)
            }
        case .record(let refusal, let value):
            writer.message(6) {
                $0.text(1, refusal.reason)
                $0.bytes(2, value)
                $0.member(3, refusal.code)
            }
        }
    }

    /// Reads `weir.v1.RefusedChange`.
    private static func change(from reader: inout WireReader) throws(WireError) -> Subject {
        var caller: SyncID?
        var knowledgeID: KnowledgeID?
        var batch: Int64?
        var refusal: Refusal?
        var json: [UInt8] = []
        while let field = try reader.next() {
            switch field.number {
            case 1: caller = try reader.id(field)
            case 2: knowledgeID = try reader.device(field)
            case 3: batch = try reader.positive(field)
            case 4:
                guard refusal == nil else { throw reader.failure(.repeated, field) }
                refusal = try reader.message(field, Refusal.init(from:))
            case 5: json = try reader.bytes(field)
            default: try reader.skip(field)
            }
        }
        guard let caller else { throw reader.missing(1) }
        guard let knowledgeID else { throw reader.missing(2) }
        guard let refusal else { throw reader.missing(4) }
        return .change(
            device: Device(caller: caller, knowledgeID: knowledgeID), batch: batch, refusal: refusal, json: json)
    }

    /// Reads `weir.v1.BrokenRecord`.
    private static func record(from reader: inout WireReader) throws(WireError) -> Subject {
        var reason = ""
        var value: [UInt8] = []
        var code: RecordRefusal.Code?
        while let field = try reader.next() {
            switch field.number {
            case 1: reason = try reader.text(field)
            case 2: value = try reader.bytes(field)
            case 3: code = try reader.member(field)
            default: try reader.skip(field)
            }
        }
        guard let code else { throw reader.missing(3) }
        return .record(RecordRefusal(code, reason), value: value)
    }
}

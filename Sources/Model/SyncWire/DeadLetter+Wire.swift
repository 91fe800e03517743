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
                subject = try reader.message(field, field.number == 5 ? Self.changes : Self.record)
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
        case .changes(let refused):
            writer.message(5) {
                $0.id(1, refused.device.caller)
                $0.id(2, refused.device.knowledgeID)
                $0.present(3, refused.batch)
                for change in refused.changes {
                    $0.message(4) { writer in
                        writer.message(1) { change.refusal.write(to: &$0) }
                        writer.bytes(2, change.json)
                    }
                }
                // In the order of the codes' numbers, so that equal values are equal bytes.
                for (code, count) in refused.others.sorted(by: { $0.key.wireNumber < $1.key.wireNumber }) {
                    $0.message(5) { writer in
                        writer.member(1, code)
                        writer.number(2, count)
                    }
                }
            }
        case .record(let refusal, let value):
            writer.message(6) {
                $0.text(1, refusal.reason)
                $0.bytes(2, value)
                $0.member(3, refusal.code)
            }
        }
    }

    /// Reads `weir.v1.RefusedChanges`.
    private static func changes(from reader: inout WireReader) throws(WireError) -> Subject {
        var caller: SyncID?
        var knowledgeID: KnowledgeID?
        var batch: Int64?
        var changes: [RefusedChanges.Change] = []
        var others: [RefusalCode: Int] = [:]
        while let field = try reader.next() {
            switch field.number {
            case 1: caller = try reader.id(field)
            case 2: knowledgeID = try reader.device(field)
            case 3: batch = try reader.positive(field)
            case 4: changes.append(try reader.message(field, change))
            case 5:
                let (code, count) = try reader.message(field, self.count)
                guard others.updateValue(count, forKey: code) == nil else { throw reader.failure(.repeated, field) }
            default: try reader.skip(field)
            }
        }
        guard let caller else { throw reader.missing(1) }
        guard let knowledgeID else { throw reader.missing(2) }
        let device = Device(caller: caller, knowledgeID: knowledgeID)
        return .changes(RefusedChanges(device: device, batch: batch, changes: changes, others: others))
    }

    /// Reads `weir.v1.RefusedChange`.
    private static func change(from reader: inout WireReader) throws(WireError) -> RefusedChanges.Change {
        var refusal: Refusal?
        var json: [UInt8] = []
        while let field = try reader.next() {
            switch field.number {
            case 1:
                guard refusal == nil else { throw reader.failure(.repeated, field) }
                refusal = try reader.message(field, Refusal.init(from:))
            case 2: json = try reader.bytes(field)
            default: try reader.skip(field)
            }
        }
        guard let refusal else { throw reader.missing(1) }
        return RefusedChanges.Change(refusal, json: json)
    }

    /// Reads `weir.v1.RefusalCount`.
    private static func count(from reader: inout WireReader) throws(WireError) -> (RefusalCode, Int) {
        var code: RefusalCode?
        var count = 0
        while let field = try reader.next() {
            switch field.number {
            case 1: code = try reader.member(field)
            case 2: count = try reader.count(field)
            default: try reader.skip(field)
            }
        }
        guard let code else { throw reader.missing(1) }
        return (code, count)
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

import SyncModel

/// `weir.v1.Refusal` (values.proto).
extension Refusal: WireEncodable, WireDecodable {
    package init(from reader: inout WireReader) throws(WireError) {
        var index = 0
        var code: RefusalCode?
        var message = ""
        while let field = try reader.next() {
            switch field.number {
            case 1: index = try reader.count(field)
            case 2: code = try reader.member(field)
            case 3: message = try reader.text(field)
            default: try reader.skip(field)
            }
        }
        guard let code else { throw reader.missing(2) }
        self.init(index: index, code: code, message: message)
    }

    package func write(to writer: inout WireWriter) {
        writer.number(1, index)
        writer.member(2, code)
        writer.text(3, message)
    }
}

/// `weir.v1.Summary` (values.proto).
extension BatchSummary: WireEncodable, WireDecodable {
    static let refusalField = 3

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(changeCount: 0)
        while let field = try reader.next() {
            switch field.number {
            case 1: changeCount = try reader.count(field)
            case 2: otherOwners.append(try reader.id(field))
            case Self.refusalField: refusals.append(try reader.message(field, Refusal.init(from:)))
            default: try reader.skip(field)
            }
        }
    }

    package func write(to writer: inout WireWriter) {
        writer.number(1, changeCount)
        for owner in otherOwners { writer.id(2, owner) }
        for refusal in refusals { writer.message(Self.refusalField) { refusal.write(to: &$0) } }
    }
}

/// `weir.v1.Result` (values.proto).
extension ChangeResult {
    /// `Result.Status`.
    private enum StatusNumber: UInt64, CaseIterable, WireEnum {
        case applied = 1
        case deleted = 2
        case conflict = 3
        case refused = 4

        var wireNumber: UInt64 { rawValue }
    }

    /// - Parameter device: its knowledgeId is that of changes without one, if the enclosing message has one.
    package init(from reader: inout WireReader, device: KnowledgeID?) throws(WireError) {
        var index = 0
        var table = 0
        var id: RowID?
        var number: StatusNumber?
        var timeStamp = TimeStamp.zero
        var version: Int64 = 0
        var knowledgeID = device
        var isWithoutRow = false
        var code: RefusalCode?
        var message = ""
        var heldFrom: TimeStamp?
        while let field = try reader.next() {
            switch field.number {
            case 1: index = try reader.count(field)
            case 2: table = try reader.count(field)
            case 3: id = try reader.id(field)
            case 4: number = try reader.member(field)
            case 5: timeStamp = try reader.timeStamp(field)
            case 6: version = try reader.number(field)
            case 7: knowledgeID = try reader.device(field)
            case 8: isWithoutRow = try reader.flag(field)
            case 9: code = try reader.member(field)
            case 10: message = try reader.text(field)
            case 11: heldFrom = try reader.timeStamp(field)
            default: try reader.skip(field)
            }
        }
        guard let id else { throw reader.missing(3) }
        guard let number else { throw reader.missing(4) }
        let status: Status
        var locator: RowLocator?
        switch number {
        case .applied where isWithoutRow:
            status = .applied(timeStamp: timeStamp, version: version, knowledgeID: nil)
        case .applied:
            guard let knowledgeID else { throw reader.missing(7) }
            status = .applied(timeStamp: timeStamp, version: version, knowledgeID: knowledgeID)
        case .deleted:
            guard let knowledgeID else { throw reader.missing(7) }
            status = .deleted(timeStamp: timeStamp, version: version, knowledgeID: knowledgeID)
        case .conflict: status = .conflict
        case .refused:
            guard let code else { throw reader.missing(9) }
            status = .refused(code, message: message)
        }
        if status.isRejected, timeStamp > .zero {
            guard let knowledgeID else { throw reader.missing(7) }
            locator = RowLocator(knowledgeID: knowledgeID, timeStamp: timeStamp)
        }
        self.init(index: index, table: table, id: id, status: status, heldFrom: heldFrom, locator: locator)
    }

    /// - Parameter device: a knowledgeId equal to it is omitted.
    @inline(__always)
    package func write(to writer: inout WireWriter, device: KnowledgeID?) {
        writer.number(1, index)
        writer.number(2, table)
        writer.id(3, id)
        switch status {
        case .applied(let timeStamp, let version, let knowledgeID):
            write(.applied, timeStamp, version, knowledgeID, to: &writer, device: device)
        case .deleted(let timeStamp, let version, let knowledgeID):
            write(.deleted, timeStamp, version, knowledgeID, to: &writer, device: device)
        case .conflict:
            writer.member(4, StatusNumber.conflict)
            writeLocator(to: &writer, device: device)
        case .refused(let code, let message):
            writer.member(4, StatusNumber.refused)
            writeLocator(to: &writer, device: device)
            writer.member(9, code)
            writer.text(10, message)
        }
        writer.present(11, heldFrom?.rawValue)
    }

    @inline(__always)
    private func write(
        _ number: StatusNumber, _ timeStamp: TimeStamp, _ version: Int64, _ knowledgeID: KnowledgeID?,
        to writer: inout WireWriter, device: KnowledgeID?
    ) {
        writer.member(4, number)
        writer.timeStamp(5, timeStamp)
        writer.number(6, version)
        if let knowledgeID {
            if device != knowledgeID { writer.id(7, knowledgeID) }
        } else {
            writer.flag(8, true)
        }
    }

    private func writeLocator(to writer: inout WireWriter, device: KnowledgeID?) {
        guard let locator else { return }
        writer.timeStamp(5, locator.timeStamp)
        if device != locator.knowledgeID { writer.id(7, locator.knowledgeID) }
    }

    /// The creating device of the result's row, if any.
    var knowledgeID: KnowledgeID? {
        switch status {
        case .applied(_, _, let knowledgeID): knowledgeID
        case .deleted(_, _, let knowledgeID): knowledgeID
        case .conflict, .refused: locator?.knowledgeID
        }
    }
}

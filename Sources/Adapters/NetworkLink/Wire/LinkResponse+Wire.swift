import FanOutLink
import SyncModel
import SyncWire

/// `weir.v1.LinkOwnerPage` (link.proto).
extension OwnerPage {
    init(link reader: inout WireReader) throws(WireError) {
        var owner: SyncID?
        var content = Content.historyChanged
        while let field = try reader.next() {
            switch field.number {
            case 1: owner = try reader.id(field)
            case 2: content = .rows(try reader.message(field, OwnerRows.init(link:)))
            default: try reader.skip(field)
            }
        }
        guard let owner else { throw reader.missing(1) }
        self.init(owner: owner, content: content)
    }

    func writeLink(to writer: inout WireWriter) {
        writer.id(1, owner)
        if case .rows(let rows) = content { writer.message(2) { rows.writeLink(to: &$0) } }
    }
}

/// `weir.v1.LinkOwnerRows` (link.proto).
extension OwnerRows {
    init(link reader: inout WireReader) throws(WireError) {
        self.init()
        while let field = try reader.next() {
            switch field.number {
            case 1: json = try reader.bytes(field)
            case 2: count = try reader.count(field)
            case 3: entries.append(try reader.entry(field))
            case 4: head = try reader.timeStamp(field)
            case 5: hasMore = try reader.flag(field)
            case 6: floor = try reader.timeStamp(field)
            default: try reader.skip(field)
            }
        }
    }

    func writeLink(to writer: inout WireWriter) {
        writer.bytes(1, json)
        writer.number(2, count)
        for entry in entries { writer.entry(3, entry.device, entry.timeStamp) }
        writer.timeStamp(4, head)
        writer.flag(5, hasMore)
        writer.present(6, floor?.rawValue)
    }
}

/// `weir.v1.LinkOutcome` (link.proto).
extension PartOutcome {
    init(link reader: inout WireReader) throws(WireError) {
        self.init()
        while let field = try reader.next() {
            switch field.number {
            case 1: refusal = try reader.member(field, of: RefusalNumber.self).refusal
            case 2: isRepeat = try reader.flag(field)
            case 3:
                results.append(
                    try reader.message(field) { (inner) throws(WireError) in
                        try ChangeResult(from: &inner, device: nil)
                    })
            case 4:
                guard summary == nil else { throw reader.failure(.repeated, field) }
                summary = try reader.message(field, BatchSummary.init(from:))
            case 5:
                let (index, json) = try reader.message(field) { (inner) throws(WireError) -> (Int, [UInt8]) in
                    var index = 0
                    var json: [UInt8] = []
                    while let field = try inner.next() {
                        switch field.number {
                        case 1: index = try inner.count(field)
                        case 2: json = try inner.bytes(field)
                        default: try inner.skip(field)
                        }
                    }
                    return (index, json)
                }
                guard rows.updateValue(json, forKey: index) == nil else { throw reader.failure(.repeated, field) }
            case 6: head = try reader.timeStamp(field)
            default: try reader.skip(field)
            }
        }
    }

    func writeLink(to writer: inout WireWriter) {
        if let refusal { writer.member(1, RefusalNumber(refusal)) }
        writer.flag(2, isRepeat)
        for result in results { writer.message(3) { result.write(to: &$0, device: nil) } }
        if let summary { writer.message(4) { summary.write(to: &$0) } }
        for (index, json) in rows {
            writer.message(5) {
                $0.number(1, index)
                $0.bytes(2, json)
            }
        }
        writer.timeStamp(6, head)
    }
}

/// `LinkOutcome.Refusal` (link.proto).
private enum RefusalNumber: UInt64, CaseIterable, WireEnum {
    case batchMismatch = 1
    case outcomeExpired = 2
    case historyChanged = 3

    init(_ refusal: BatchRefusal) {
        switch refusal {
        case .batchMismatch: self = .batchMismatch
        case .outcomeExpired: self = .outcomeExpired
        case .historyChanged: self = .historyChanged
        }
    }

    var wireNumber: UInt64 { rawValue }

    var refusal: BatchRefusal {
        switch self {
        case .batchMismatch: .batchMismatch
        case .outcomeExpired: .outcomeExpired
        case .historyChanged: .historyChanged
        }
    }
}

/// `LinkFailure.Code` (link.proto).
private enum FailureNumber: UInt64, CaseIterable, WireEnum {
    case pending = 1
    case notReady = 2
    case closed = 3

    var wireNumber: UInt64 { rawValue }
}

/// `weir.v1.LinkFailure` (link.proto).
extension FanOutError {
    init(link reader: inout WireReader) throws(WireError) {
        var number: FailureNumber?
        var message = ""
        while let field = try reader.next() {
            switch field.number {
            case 1: number = try reader.member(field)
            case 2: message = try reader.text(field)
            default: try reader.skip(field)
            }
        }
        switch number {
        case nil: throw reader.missing(1)
        case .pending: self = .pending
        case .notReady: self = .notReady(message)
        case .closed: self = .closed
        }
    }

    func writeLink(to writer: inout WireWriter) {
        switch self {
        case .pending: writer.member(1, FailureNumber.pending)
        case .notReady(let message):
            writer.member(1, FailureNumber.notReady)
            writer.text(2, message)
        case .closed: writer.member(1, FailureNumber.closed)
        }
    }
}

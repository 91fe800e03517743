import FanOutLink
import SyncModel
import SyncWire

/// `weir.v1.GatewayMessage` (link.proto).
extension GatewayMessage: WireEncodable, WireDecodable {
    package init(from reader: inout WireReader) throws(WireError) {
        try reader.requireLinkFormat()
        self = .unknown
        while let field = try reader.next() {
            switch field.number {
            case 2: self = try reader.message(field) { (inner) throws(WireError) in try Self.hello(&inner) }
            case 3: self = try reader.message(field) { (inner) throws(WireError) in try Self.request(&inner) }
            case 4:
                self = .cancel(
                    try reader.list(field) { (inner, field) throws(WireError) in try inner.number(field) })
            case 5: self = .subscribe(try reader.owners(field))
            case 6: self = .unsubscribe(try reader.owners(field))
            case 7:
                let received = try reader.list(field) { (inner, field) throws(WireError) in try inner.number(field) }
                self = .ping(received: received.last ?? 0)
            default: try reader.skip(field)
            }
        }
    }

    private static func hello(_ reader: inout WireReader) throws(WireError) -> GatewayMessage {
        var epoch: String?
        var wantsPassed = false
        while let field = try reader.next() {
            switch field.number {
            case 1: epoch = try reader.name(field)
            case 2: wantsPassed = try reader.flag(field)
            default: try reader.skip(field)
            }
        }
        guard let epoch else { throw reader.missing(1) }
        return .hello(epoch: epoch, wantsPassed: wantsPassed)
    }

    private static func request(_ reader: inout WireReader) throws(WireError) -> GatewayMessage {
        var number: Int64 = 0
        var within = Duration.zero
        var request: LinkRequest?
        var rows: RowWindow?
        while let field = try reader.next() {
            switch field.number {
            case 1: number = try reader.number(field)
            case 2:
                let longest = LinkFormat.longestWait.components.seconds * 1_000_000
                within = .microseconds(try reader.number(field, upTo: longest))
            case 3: request = .pull(try reader.message(field, PagePull.init(link:)))
            case 4: request = .outcome(try reader.message(field, PartReference.init(link:)), rows: nil)
            case 5: request = try reader.message(field) { (inner) throws(WireError) in try keptOutcome(&inner) }
            case 6: request = .heads(try reader.owners(field))
            case 7: rows = try reader.message(field, RowWindow.init(link:))
            case 8: request = .rows(try reader.message(field, StreamQuery.init(link:)))
            default: try reader.skip(field)
            }
        }
        return .request(number: number, within: within, try completed(request, rows, reader))
    }

    /// The request with the window that is a field of its own.
    private static func completed(
        _ request: LinkRequest?, _ rows: RowWindow?, _ reader: WireReader
    ) throws(WireError) -> LinkRequest {
        switch request {
        case nil: throw reader.missing(3)
        case .outcome(let part, _): .outcome(part, rows: rows)
        case .keptOutcome(let batch, let key, _): .keptOutcome(batch: batch, key: key, rows: rows)
        case let other?: other
        }
    }

    private static func keptOutcome(_ reader: inout WireReader) throws(WireError) -> LinkRequest {
        var batch: Int64?
        var key: DeviceKey?
        while let field = try reader.next() {
            switch field.number {
            case 1: batch = try reader.positive(field)
            case 2: key = try reader.message(field, DeviceKey.init(link:))
            default: try reader.skip(field)
            }
        }
        guard let batch else { throw reader.missing(1) }
        guard let key else { throw reader.missing(2) }
        return .keptOutcome(batch: batch, key: key, rows: nil)
    }

    package func write(to writer: inout WireWriter) {
        writer.number(1, LinkFormat.current)
        switch self {
        case .hello(let epoch, let wantsPassed):
            writer.message(2) {
                $0.text(1, epoch)
                $0.flag(2, wantsPassed)
            }
        case .request(let number, let within, let request):
            writer.message(3) { writer in
                writer.number(1, number)
                writer.number(2, Self.microseconds(within))
                request.write(to: &writer)
            }
        case .cancel(let numbers):
            writer.message(4) { writer in
                for number in numbers { writer.present(1, number) }
            }
        case .subscribe(let owners): writer.owners(5, owners)
        case .unsubscribe(let owners): writer.owners(6, owners)
        case .ping(let received): writer.message(7) { $0.number(1, received) }
        case .unknown: break
        }
    }

    /// Rounds a wait up to microseconds, so that none becomes shorter, and cuts it to the longest allowed.
    private static func microseconds(_ wait: Duration) -> Int64 {
        let (seconds, attoseconds) = min(max(wait, .zero), LinkFormat.longestWait).components
        let longest = LinkFormat.longestWait.components.seconds * 1_000_000
        return min(longest, seconds * 1_000_000 + (attoseconds + 999_999_999_999) / 1_000_000_000_000)
    }
}

extension LinkRequest {
    fileprivate func write(to writer: inout WireWriter) {
        switch self {
        case .pull(let pull): writer.message(3) { pull.writeLink(to: &$0) }
        case .outcome(let part, let rows):
            writer.message(4) { part.writeLink(to: &$0) }
            if let rows { writer.message(7) { rows.writeLink(to: &$0) } }
        case .keptOutcome(let batch, let key, let rows):
            writer.message(5) { writer in
                writer.number(1, batch)
                writer.message(2) { key.writeLink(to: &$0) }
            }
            if let rows { writer.message(7) { rows.writeLink(to: &$0) } }
        case .heads(let owners): writer.owners(6, owners)
        case .rows(let query): writer.message(8) { query.writeLink(to: &$0) }
        }
    }
}

extension WireReader {
    /// Checks the format before any other field, whose meaning may differ in a newer one; does not move the reader.
    func requireLinkFormat() throws(WireError) {
        var scan = self
        while let field = try scan.next() {
            guard field.number == 1 else {
                try scan.skip(field)
                continue
            }
            let format = try scan.varint(field)
            guard format <= UInt64(LinkFormat.current) else { throw scan.failure(.unsupportedFormat(format), field) }
            guard format > 0 else { throw scan.failure(.missing, field) }
            return
        }
        throw missing(1)
    }

    /// Reads a message that has one field, number 1: each of its occurrences, in order.
    mutating func list<Element>(
        _ field: Field, of element: (inout WireReader, Field) throws(WireError) -> Element
    ) throws(WireError) -> [Element] {
        try message(field) { (inner) throws(WireError) in
            var elements: [Element] = []
            while let field = try inner.next() {
                if field.number == 1 { elements.append(try element(&inner, field)) } else { try inner.skip(field) }
            }
            return elements
        }
    }

    /// `LinkOwners`.
    fileprivate mutating func owners(_ field: Field) throws(WireError) -> [SyncID] {
        try list(field) { (inner, field) throws(WireError) in try inner.id(field) }
    }
}

extension WireWriter {
    /// `LinkOwners`.
    fileprivate mutating func owners(_ field: Int, _ owners: [SyncID]) {
        message(field) { writer in
            for owner in owners { writer.id(1, owner) }
        }
    }
}

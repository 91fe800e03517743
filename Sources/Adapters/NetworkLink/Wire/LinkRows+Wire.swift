import FanOutLink
import SyncModel
import SyncWire

/// `weir.v1.LinkQuery` (link.proto).
extension StreamQuery {
    init(link reader: inout WireReader) throws(WireError) {
        var owner: SyncID?
        var selection: Selection?
        var (limit, maximumBytes) = (0, 0)
        var leastHead = TimeStamp.zero
        while let field = try reader.next() {
            switch field.number {
            case 1: owner = try reader.id(field)
            case 2: selection = try reader.message(field, Selection.init(link:))
            case 3: limit = try reader.count(field)
            case 4: maximumBytes = Int(try reader.number(field))
            case 5: leastHead = try reader.timeStamp(field)
            default: try reader.skip(field)
            }
        }
        guard let owner else { throw reader.missing(1) }
        guard let selection else { throw reader.missing(2) }
        self.init(of: owner, selection, limit: limit, maximumBytes: maximumBytes, leastHead: leastHead)
    }

    func writeLink(to writer: inout WireWriter) {
        writer.id(1, owner)
        writer.message(2) { selection.writeLink(to: &$0) }
        writer.number(3, min(max(limit, 0), Int(Int32.max)))
        writer.number(4, max(maximumBytes, 0))
        writer.timeStamp(5, leastHead)
    }
}

/// `weir.v1.LinkSelection` (link.proto).
extension StreamQuery.Selection {
    init(link reader: inout WireReader) throws(WireError) {
        var selection: Self?
        while let field = try reader.next() {
            switch field.number {
            case 1: selection = try reader.message(field) { (inner) throws(WireError) in try Self.ids(&inner) }
            case 2: selection = try reader.message(field) { (inner) throws(WireError) in try Self.table(&inner) }
            case 3: selection = try reader.message(field) { (inner) throws(WireError) in try Self.changes(&inner) }
            default: try reader.skip(field)
            }
        }
        guard let selection else { throw reader.missing(1) }
        self = selection
    }

    private static func ids(_ reader: inout WireReader) throws(WireError) -> Self {
        var table = 0
        var ids: [RowID] = []
        while let field = try reader.next() {
            switch field.number {
            case 1: table = try reader.count(field)
            case 2: ids.append(try reader.id(field))
            default: try reader.skip(field)
            }
        }
        return .ids(table: table, ids)
    }

    private static func table(_ reader: inout WireReader) throws(WireError) -> Self {
        var table = 0
        var after: RowID?
        while let field = try reader.next() {
            switch field.number {
            case 1: table = try reader.count(field)
            case 2: after = try reader.id(field)
            default: try reader.skip(field)
            }
        }
        return .table(table, after: after)
    }

    private static func changes(_ reader: inout WireReader) throws(WireError) -> Self {
        var (above, upTo) = (TimeStamp.zero, TimeStamp.zero)
        var table: Int?
        while let field = try reader.next() {
            switch field.number {
            case 1: above = try reader.timeStamp(field)
            case 2: upTo = try reader.timeStamp(field)
            case 3: table = try reader.count(field)
            default: try reader.skip(field)
            }
        }
        return .changes(above: above, upTo: upTo, table: table)
    }

    func writeLink(to writer: inout WireWriter) {
        switch self {
        case .ids(let table, let ids):
            writer.message(1) { writer in
                writer.number(1, table)
                for id in ids { writer.id(2, id) }
            }
        case .table(let table, let after):
            writer.message(2) { writer in
                writer.number(1, table)
                if let after { writer.id(2, after) }
            }
        case .changes(let above, let upTo, let table):
            writer.message(3) { writer in
                writer.timeStamp(1, above)
                writer.timeStamp(2, upTo)
                writer.present(3, table.map(Int64.init))
            }
        }
    }
}

/// `weir.v1.LinkStreamRows` (link.proto).
extension StreamRows {
    init(link reader: inout WireReader) throws(WireError) {
        self.init()
        while let field = try reader.next() {
            switch field.number {
            case 1: try reader.message(field) { (inner) throws(WireError) in try readRow(&inner) }
            case 2: head = try reader.timeStamp(field)
            case 3: rest = try reader.message(field, StreamQuery.Selection.init(link:))
            default: try reader.skip(field)
            }
        }
    }

    func writeLink(to writer: inout WireWriter) {
        for row in rows { writer.message(1) { write(row, to: &$0) } }
        writer.timeStamp(2, head)
        if let rest { writer.message(3) { rest.writeLink(to: &$0) } }
    }

    /// `weir.v1.LinkStreamRow` (link.proto).
    private mutating func readRow(_ reader: inout WireReader) throws(WireError) {
        var table = 0
        var timeStamp = TimeStamp.zero
        var createdAt: Int64 = 0
        var isExact = false
        var columns = 0
        var json: [UInt8] = []
        while let field = try reader.next() {
            switch field.number {
            case 1: table = try reader.count(field)
            case 2: timeStamp = try reader.timeStamp(field)
            case 3: isExact = try reader.flag(field)
            case 4: json = try reader.bytes(field)
            case 5: createdAt = try reader.signed(field)
            case 6: columns = try reader.count(field)
            default: try reader.skip(field)
            }
        }
        append(
            table: table, timeStamp: timeStamp, createdAt: createdAt, isExact: isExact, columns: columns,
            json: json.span.bytes)
    }

    private func write(_ row: StreamRow, to writer: inout WireWriter) {
        writer.number(1, row.table)
        writer.timeStamp(2, row.timeStamp)
        writer.flag(3, row.isExact)
        writer.bytes(4, json.span.extracting(row.json))
        writer.signed(5, row.createdAt)
        writer.number(6, row.columns)
    }
}

import FanOutLink
import SyncModel
import SyncWire

/// `weir.v1.FanOutMessage` (link.proto).
extension FanOutMessage: WireEncodable, WireDecodable {
    package init(from reader: inout WireReader) throws(WireError) {
        try reader.requireLinkFormat()
        self = .unknown
        while let field = try reader.next() {
            switch field.number {
            case 2: self = .description(try reader.message(field, LinkDescription.init(link:)))
            case 3: self = try reader.message(field) { (inner) throws(WireError) in try Self.response(&inner) }
            case 4:
                let moves = try reader.list(field) { (inner, field) throws(WireError) in try inner.move(field) }
                self = .moves(Dictionary(moves) { _, last in last })
            case 5:
                self = .passed(
                    try reader.list(field) { (inner, field) throws(WireError) in
                        try inner.message(field, StreamReport.init(link:))
                    })
            case 6:
                try reader.skip(field)
                self = .pong
            case 7:
                let reasons = try reader.list(field) { (inner, field) throws(WireError) in try inner.text(field) }
                self = .goodbye(reasons.last ?? "")
            default: try reader.skip(field)
            }
        }
    }

    private static func response(_ reader: inout WireReader) throws(WireError) -> FanOutMessage {
        var number: Int64 = 0
        var response: LinkResponse?
        while let field = try reader.next() {
            switch field.number {
            case 1: number = try reader.number(field)
            case 2:
                response = .pages(
                    try reader.list(field) { (inner, field) throws(WireError) in
                        try inner.message(field, OwnerPage.init(link:))
                    })
            case 3: response = .outcome(try reader.message(field, PartOutcome.init(link:)))
            case 4:
                let outcomes = try reader.list(field) { (inner, field) throws(WireError) in
                    try inner.message(field, PartOutcome.init(link:))
                }
                response = .keptOutcome(outcomes.last)
            case 5:
                response = .heads(
                    try reader.list(field) { (inner, field) throws(WireError) in try inner.timeStamp(field) })
            case 6: response = .failure(try reader.message(field, FanOutError.init(link:)))
            case 7:
                let rows = try reader.list(field) { (inner, field) throws(WireError) in
                    try inner.message(field, StreamRows.init(link:))
                }
                response = .rows(rows.last)
            default: try reader.skip(field)
            }
        }
        guard let response else { throw reader.missing(2) }
        return .response(number: number, response)
    }

    package func write(to writer: inout WireWriter) {
        writer.number(1, LinkFormat.current)
        switch self {
        case .description(let description): writer.message(2) { description.writeLink(to: &$0) }
        case .response(let number, let response):
            writer.message(3) { writer in
                writer.number(1, number)
                response.write(to: &writer)
            }
        case .moves(let moves):
            writer.message(4) { writer in
                for (owner, head) in moves {
                    writer.message(1) {
                        $0.id(1, owner)
                        $0.timeStamp(2, head)
                    }
                }
            }
        case .passed(let reports):
            writer.message(5) { writer in
                for report in reports { writer.message(1) { report.writeLink(to: &$0) } }
            }
        case .pong: writer.message(6) { _ in }
        case .goodbye(let reason): writer.message(7) { $0.text(1, reason) }
        case .unknown: break
        }
    }
}

extension LinkResponse {
    fileprivate func write(to writer: inout WireWriter) {
        switch self {
        case .pages(let pages):
            writer.message(2) { writer in
                for page in pages { writer.message(1) { page.writeLink(to: &$0) } }
            }
        case .outcome(let outcome): writer.message(3) { outcome.writeLink(to: &$0) }
        case .keptOutcome(let outcome):
            writer.message(4) { writer in
                if let outcome { writer.message(1) { outcome.writeLink(to: &$0) } }
            }
        case .heads(let heads):
            writer.message(5) { writer in
                for head in heads { writer.present(1, head.rawValue) }
            }
        case .failure(let error): writer.message(6) { error.writeLink(to: &$0) }
        case .rows(let rows):
            writer.message(7) { writer in
                if let rows { writer.message(1) { rows.writeLink(to: &$0) } }
            }
        }
    }
}

/// `weir.v1.LinkDescription` (link.proto).
extension LinkDescription {
    fileprivate init(link reader: inout WireReader) throws(WireError) {
        var epoch: String?
        var partitions = 0
        var ready: Set<Int> = []
        while let field = try reader.next() {
            switch field.number {
            case 1: epoch = try reader.name(field)
            case 2: partitions = Int(try reader.positive(field, upTo: Int64(Int32.max)))
            case 3: ready.insert(try reader.count(field))
            default: try reader.skip(field)
            }
        }
        guard let epoch else { throw reader.missing(1) }
        guard partitions > 0 else { throw reader.missing(2) }
        self.init(epoch: epoch, partitions: partitions, ready: ready)
    }

    fileprivate func writeLink(to writer: inout WireWriter) {
        writer.text(1, epoch)
        writer.number(2, partitions)
        for partition in ready.sorted() { writer.present(3, Int64(partition)) }
    }
}

/// `weir.v1.LinkStream` (link.proto).
extension StreamReport {
    fileprivate init(link reader: inout WireReader) throws(WireError) {
        var partition = 0
        var uploads: [Int: UploadProgress] = [:]
        var partsElsewhere: [Int: Int64] = [:]
        var largeParts: [LargePart] = []
        while let field = try reader.next() {
            switch field.number {
            case 1: partition = try reader.count(field)
            case 2:
                let part = try reader.part(field)
                uploads[part.partition] = part.progress
            case 3:
                let part = try reader.part(field)
                partsElsewhere[part.partition] = part.progress.offset
            case 4: largeParts.append(try reader.message(field, LargePart.init(link:)))
            default: try reader.skip(field)
            }
        }
        self.init(partition: partition, uploads: uploads, partsElsewhere: partsElsewhere, largeParts: largeParts)
    }

    fileprivate func writeLink(to writer: inout WireWriter) {
        writer.number(1, partition)
        for (partition, progress) in uploads.sorted(by: { $0.key < $1.key }) {
            writer.message(2) {
                $0.number(1, partition)
                $0.number(2, progress.offset)
                $0.number(3, progress.part)
            }
        }
        for (partition, offset) in partsElsewhere.sorted(by: { $0.key < $1.key }) {
            writer.message(3) {
                $0.number(1, partition)
                $0.number(2, offset)
            }
        }
        for part in largeParts { writer.message(4) { part.writeLink(to: &$0) } }
    }
}

/// `weir.v1.LinkLargePart` (link.proto).
extension StreamReport.LargePart {
    fileprivate init(link reader: inout WireReader) throws(WireError) {
        var (partition, part) = (0, 0)
        var offset: Int64 = 0
        var caller: SyncID?
        var knowledgeID: KnowledgeID?
        var touchedBytes = 0
        while let field = try reader.next() {
            switch field.number {
            case 1: partition = try reader.count(field)
            case 2: offset = try reader.number(field)
            case 3: part = try reader.count(field)
            case 4: caller = try reader.id(field)
            case 5: knowledgeID = try reader.device(field)
            case 6: touchedBytes = Int(try reader.number(field))
            default: try reader.skip(field)
            }
        }
        guard let caller else { throw reader.missing(4) }
        guard let knowledgeID else { throw reader.missing(5) }
        self.init(
            source: partition, progress: UploadProgress(offset: offset, part: part),
            device: Device(caller: caller, knowledgeID: knowledgeID), touchedBytes: touchedBytes)
    }

    fileprivate func writeLink(to writer: inout WireWriter) {
        writer.number(1, source)
        writer.number(2, progress.offset)
        writer.number(3, progress.part)
        writer.id(4, device.caller)
        writer.id(5, device.knowledgeID)
        writer.number(6, touchedBytes)
    }
}

extension WireReader {
    /// `LinkMove`.
    fileprivate mutating func move(_ field: Field) throws(WireError) -> (SyncID, TimeStamp) {
        try message(field) { (inner) throws(WireError) in
            var owner: SyncID?
            var head = TimeStamp.zero
            while let field = try inner.next() {
                switch field.number {
                case 1: owner = try inner.id(field)
                case 2: head = try inner.timeStamp(field)
                default: try inner.skip(field)
                }
            }
            guard let owner else { throw inner.missing(1) }
            return (owner, head)
        }
    }

    /// `LinkPart`.
    fileprivate mutating func part(_ field: Field) throws(WireError) -> (partition: Int, progress: UploadProgress) {
        try message(field) { (inner) throws(WireError) in
            var (partition, part) = (0, 0)
            var offset: Int64 = 0
            while let field = try inner.next() {
                switch field.number {
                case 1: partition = try inner.count(field)
                case 2: offset = try inner.number(field)
                case 3: part = try inner.count(field)
                default: try inner.skip(field)
                }
            }
            return (partition, UploadProgress(offset: offset, part: part))
        }
    }
}

import DeviceRegistry
import HTTP
import JSON
import SyncModel
import Synchronization

/// The parsed body of a request, except for the contents of its changes but their owners, which stay JSON bytes.
struct Envelope: Sendable {
    /// The groups of fields that a route reads; it ignores all others, like unknown fields.
    struct Fields: OptionSet {
        let rawValue: Int

        /// batch, atomic, changes.
        static let upload = Fields(rawValue: 1)
        /// knowledge, cutFrom, limit, compact.
        static let pull = Fields(rawValue: 2)
        /// wait, include.
        static let waiting = Fields(rawValue: 4)
    }

    /// Rows of a page if the request has no `limit`.
    static let defaultLimit = 1000
    /// A larger `limit` is reduced to this.
    static let maximumLimit = 10_000
    /// In seconds; a longer `wait` is reduced to this.
    static let maximumWait = 50
    /// A device's outcomes that are kept, so a pull can include no more batches.
    static let maximumInclude = Outcome.keptPerDevice

    var knowledgeID: KnowledgeID?
    /// What the device says of itself.
    var description = DeviceDescription()
    var epoch: String?
    var schemaVersion: String?
    var batch: Int64?
    var isAtomic = false
    var changes: ChangesJSON?
    var changeCount = 0
    /// The owners that changes name, whether or not the caller may write their rows.
    var owners: Set<SyncID> = []
    var knowledge = KnowledgeVector()
    var limit = Envelope.defaultLimit
    var isCompact = false
    var wait: Duration = .zero
    var include: [Int64] = []

    /// Whether the request uploads something: it has a batch number or changes.
    var isUpload: Bool { batch != nil || changeCount > 0 }

    /// Whether the response has a `batch` object.
    var namesBatch: Bool { batch != nil || changes != nil }
}

extension Envelope {
    /// Changes that are uploaded without a number.
    init(changes: [UInt8], count: Int, isAtomic: Bool, schemaVersion: String) {
        self.changes = ChangesJSON(changes)
        changeCount = count
        self.isAtomic = isAtomic
        self.schemaVersion = schemaVersion
    }

    init(_ root: borrowing JSONValue, fields: Fields) throws(Problem) {
        guard var members = root.members else { throw Self.invalid("the body must be an object") }
        if let repeated = root.repeatedMember {
            throw Problem(.invalidRequest, "a field is repeated", position: repeated.nameRange.lowerBound)
        }
        while let member = members.next() {
            if member.isNamed("knowledgeId") {
                knowledgeID = try Self.device(member.value, "knowledgeId")
            } else if member.isNamed("device") {
                try readDescription(member.value)
            } else if member.isNamed("epoch") {
                epoch = try Self.text(member.value, "epoch")
            } else if member.isNamed("schemaVersion") {
                schemaVersion = try Self.text(member.value, "schemaVersion")
            } else if fields.contains(.upload), try readUpload(member) {
                continue
            } else if fields.contains(.pull), try readPull(member) {
                continue
            } else if fields.contains(.waiting) {
                try readWaiting(member)
            }
        }
    }

    private mutating func readDescription(_ value: borrowing JSONValue) throws(Problem) {
        if value.isNull { return }
        guard var members = value.members, value.repeatedMember == nil else {
            throw Self.invalid("device must be an object that has each field once", value)
        }
        while let member = members.next() {
            if member.isNamed("name") {
                description.name = try Self.label(member.value, "name")
            } else if member.isNamed("platform") {
                description.platform = try Self.label(member.value, "platform")
            } else if member.isNamed("appVersion") {
                description.appVersion = try Self.label(member.value, "appVersion")
            }
        }
    }

    private mutating func readUpload(_ member: borrowing JSONMember) throws(Problem) -> Bool {
        if member.isNamed("batch") {
            if !member.value.isNull { batch = try Self.batchNumber(member.value, "batch") }
        } else if member.isNamed("atomic") {
            isAtomic = try Self.flag(member.value, "atomic")
        } else if member.isNamed("changes") {
            guard member.value.kind == .array else { throw Self.invalid("changes must be an array", member.value) }
            changeCount = member.value.count
            changes = ChangesJSON(Array(copying: member.value.sourceBytes))
            readOwners(member.value)
        } else {
            return false
        }
        return true
    }

    /// Reads whom the changes are for; what is wrong with them is for ingest to refuse.
    private mutating func readOwners(_ changes: borrowing JSONValue) {
        guard var elements = changes.elements else { return }
        while let element = elements.next() {
            guard let text = element.member(named: "syncId")?.string, let owner = SyncID(utf8: Array(copying: text))
            else { continue }
            owners.insert(owner)
        }
    }

    private mutating func readPull(_ member: borrowing JSONMember) throws(Problem) -> Bool {
        if member.isNamed("knowledge") {
            try readKnowledge(member.value)
        } else if member.isNamed("cutFrom") {
            try readCutFrom(member.value)
        } else if member.isNamed("limit") {
            // A number beyond 64 bits is reduced to the maximum, too.
            let number = member.value.int64 ?? member.value.double.flatMap { $0 > 0x1p62 ? .max : nil }
            guard let number, number >= 1 else {
                throw Self.invalid("limit must be an integer of at least 1", member.value)
            }
            limit = Int(min(number, Int64(Self.maximumLimit)))
        } else if member.isNamed("compact") {
            isCompact = try Self.flag(member.value, "compact")
        } else {
            return false
        }
        return true
    }

    private mutating func readWaiting(_ member: borrowing JSONMember) throws(Problem) {
        if member.isNamed("wait") {
            guard let seconds = member.value.double, seconds >= 0 else {
                throw Self.invalid("wait must be a number of seconds, at least 0", member.value)
            }
            wait = .milliseconds(Int(min(seconds, Double(Self.maximumWait)) * 1000))
        } else if member.isNamed("include") {
            guard var elements = member.value.elements, member.value.count <= Self.maximumInclude else {
                throw Self.invalid(
                    "include must be an array of at most \(Self.maximumInclude) batch numbers", member.value)
            }
            while let element = elements.next() { include.append(try Self.batchNumber(element, "include")) }
        }
    }

    private mutating func readKnowledge(_ value: borrowing JSONValue) throws(Problem) {
        guard var elements = value.elements else { throw Self.invalid("knowledge must be an array", value) }
        while let element = elements.next() {
            guard let owner = element.member(named: "syncId"), let device = element.member(named: "knowledgeId"),
                let last = element.member(named: "lastTimeStamp"), element.repeatedMember == nil
            else {
                throw Self.invalid(
                    "an entry of knowledge must have syncId, knowledgeId and lastTimeStamp, once each", element)
            }
            let syncID = try Self.owner(owner)
            guard let deviceText = device.string, let knowledgeID = KnowledgeID(utf8: Array(copying: deviceText)) else {
                throw Self.invalid("knowledgeId must be a string of 1 to 255 bytes without NUL", device)
            }
            let timeStamp = try Self.timeStamp(last, "lastTimeStamp")
            guard knowledge.insert(timeStamp, for: knowledgeID, of: syncID) else {
                throw Self.invalid("knowledge has two entries for the same syncId and knowledgeId", element)
            }
        }
    }

    private mutating func readCutFrom(_ value: borrowing JSONValue) throws(Problem) {
        if value.isNull { return }
        guard var elements = value.elements else { throw Self.invalid("cutFrom must be an array", value) }
        while let element = elements.next() {
            guard let owner = element.member(named: "syncId"), let head = element.member(named: "head"),
                element.repeatedMember == nil
            else { throw Self.invalid("an entry of cutFrom must have syncId and head, once each", element) }
            knowledge.insert(cutFrom: try Self.timeStamp(head, "head"), of: try Self.owner(owner))
        }
    }

    private static func owner(_ value: borrowing JSONValue) throws(Problem) -> SyncID {
        guard let text = value.string, let owner = SyncID(utf8: Array(copying: text)) else {
            throw invalid("syncId must be a string of 1 to 255 bytes without NUL", value)
        }
        return owner
    }

    private static func timeStamp(_ value: borrowing JSONValue, _ name: String) throws(Problem) -> TimeStamp {
        guard let timeStamp = value.int64.flatMap(TimeStamp.init(rawValue:)) else {
            throw invalid("\(name) must be an integer from 0 to 2^53-1", value)
        }
        return timeStamp
    }

    /// A device; `*` is reserved for the rest of a vector.
    private static func device(_ value: borrowing JSONValue, _ name: String) throws(Problem) -> KnowledgeID {
        guard let text = value.string, let device = KnowledgeID(utf8: Array(copying: text)), device != .everyOther
        else {
            throw invalid("\(name) must be a string of 1 to 255 bytes without NUL, and not *", value)
        }
        return device
    }

    private static func text(_ value: borrowing JSONValue, _ name: String) throws(Problem) -> String? {
        if value.isNull { return nil }
        guard let text = value.string, text.count <= 255 else {
            throw invalid("\(name) must be a string of at most 255 bytes", value)
        }
        return String(decoding: Array(copying: text), as: UTF8.self)
    }

    /// A text for people, which every registry can store; `nil` for null.
    static func label(_ value: borrowing JSONValue, _ name: String) throws(Problem) -> String? {
        if value.isNull { return nil }
        guard let bytes = value.string, let text = String(validating: Array(copying: bytes), as: UTF8.self),
            (1...DeviceDescription.maximumLength).contains(text.utf8.count), !text.utf8.contains(0)
        else {
            throw invalid(
                "\(name) must be a string of 1 to \(DeviceDescription.maximumLength) bytes without NUL, or null", value)
        }
        return text
    }

    static func flag(_ value: borrowing JSONValue, _ name: String) throws(Problem) -> Bool {
        guard let flag = value.bool else { throw invalid("\(name) must be true or false", value) }
        return flag
    }

    private static func batchNumber(_ value: borrowing JSONValue, _ name: String) throws(Problem) -> Int64 {
        guard let number = value.int64, number >= 1, number <= TimeStamp.maximum.rawValue else {
            throw invalid("\(name): a batch number must be an integer from 1 to 2^53-1", value)
        }
        return number
    }

    private static func invalid(_ detail: String, _ value: borrowing JSONValue) -> Problem {
        Problem(.invalidRequest, detail, position: value.sourceRange.lowerBound)
    }

    private static func invalid(_ detail: String) -> Problem { Problem(.invalidRequest, detail) }
}

/// The changes of a request as a JSON array, as sent.
///
/// The bytes are handed over to the append, so that they are not kept in memory while the request waits for its
/// outcome.
final class ChangesJSON: Sendable {
    let byteCount: Int
    private let bytes: Mutex<[UInt8]?>

    init(_ bytes: [UInt8]) {
        byteCount = bytes.count
        self.bytes = Mutex(bytes)
    }

    /// Traps when called a second time.
    func take() -> [UInt8] {
        guard let taken = bytes.withLock({ $0.take() }) else { preconditionFailure("changes are appended once") }
        return taken
    }

    /// Frees the bytes of changes that are refused, since the refusal may be held back.
    func drop() { bytes.withLock { $0 = nil } }
}

/// Parses bodies; what is wrong with one is a problem of its request.
struct BodyParsers: Sendable {
    private let parsers = JSONParserPool()

    func parse<Result>(
        _ body: HTTPBody, _ read: (borrowing JSONValue) throws(Problem) -> Result
    ) throws(Problem) -> Result {
        do {
            return try body.withUnsafeBytes { bytes in
                guard let base = bytes.baseAddress, !bytes.isEmpty else { throw JSONError(.empty, at: 0) }
                // `HTTPBody.padding` bytes after the body's end are readable.
                let padding = HTTPBody.padding >= JSONParser.padding ? JSONParser.padding : 0
                let padded = UnsafeRawBufferPointer(start: base, count: bytes.count + padding)
                return try parsers.withParser(for: bytes.count) { parser in
                    try parser.withDocument(padded.bindMemory(to: UInt8.self).span, padding: padding) { document in
                        try read(document.root)
                    }
                }
            }
        } catch let problem as Problem {
            throw problem
        } catch let error as JSONError where error.reason == .outOfMemory {
            throw Problem(.overloaded, "no memory to parse the body")
        } catch let error as JSONError {
            throw Problem(.malformedJSON, error.message, position: error.position)
        } catch {
            throw Problem(.malformedJSON, "\(error)")
        }
    }
}

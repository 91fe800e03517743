import JSON
import SyncModel

/// A request's body as far as the gateway looks: everything but what is inside the changes (design: stages, 1).
struct Envelope: Sendable {
    /// The groups of fields that a route reads; others are unknown fields to it, which are ignored.
    struct Fields: OptionSet {
        let rawValue: Int

        /// epoch, schemaVersion, batch, atomic, changes.
        static let upload = Fields(rawValue: 1)
        /// knowledge, cutFrom, limit, compact.
        static let pull = Fields(rawValue: 2)
        /// wait, include.
        static let waiting = Fields(rawValue: 4)
    }

    /// Rows of a page where the request does not say.
    static let defaultLimit = 1000
    /// More is taken as this.
    static let maximumLimit = 10_000
    /// Seconds; more is taken as this.
    static let maximumWait = 50
    /// Batches that a pull may ask to include: as many outcomes as are kept.
    static let maximumInclude = Outcome.keptPerDevice

    var knowledgeID: KnowledgeID?
    var epoch: String?
    var schemaVersion: String?
    var batch: Int64?
    var isAtomic = false
    /// The JSON array as it was sent.
    var changes: ChangesJSON?
    var changeCount = 0
    var knowledge = KnowledgeVector()
    var limit = Envelope.defaultLimit
    var isCompact = false
    var wait: Duration = .zero
    var include: [Int64] = []

    /// Whether the request uploads: it numbers a batch, or has changes.
    var isUpload: Bool { batch != nil || changeCount > 0 }

    /// Whether the answer has a `batch` object.
    var namesBatch: Bool { batch != nil || changes != nil }
}

extension Envelope {
    /// Reads a body.
    init(_ root: borrowing JSONValue, fields: Fields) throws(Problem) {
        guard var members = root.members else { throw Self.invalid("the body is no object") }
        if let repeated = root.repeatedMember {
            throw Problem(
                .invalidRequest, "a field stands there twice", position: repeated.nameRange.lowerBound)
        }
        while let member = members.next() {
            if member.isNamed("knowledgeId") {
                knowledgeID = try Self.device(member.value, "knowledgeId")
            } else if member.isNamed("epoch") {
                epoch = try Self.text(member.value, "epoch")
            } else if fields.contains(.upload), try readUpload(member) {
                continue
            } else if fields.contains(.pull), try readPull(member) {
                continue
            } else if fields.contains(.waiting) {
                try readWaiting(member)
            }
        }
    }

    private mutating func readUpload(_ member: borrowing JSONMember) throws(Problem) -> Bool {
        if member.isNamed("schemaVersion") {
            schemaVersion = try Self.text(member.value, "schemaVersion")
        } else if member.isNamed("batch") {
            if !member.value.isNull { batch = try Self.batchNumber(member.value, "batch") }
        } else if member.isNamed("atomic") {
            isAtomic = try Self.flag(member.value, "atomic")
        } else if member.isNamed("changes") {
            guard member.value.kind == .array else { throw Self.invalid("changes is no array", member.value) }
            changeCount = member.value.count
            changes = ChangesJSON(Array(copying: member.value.sourceBytes))
        } else {
            return false
        }
        return true
    }

    private mutating func readPull(_ member: borrowing JSONMember) throws(Problem) -> Bool {
        if member.isNamed("knowledge") {
            try readKnowledge(member.value)
        } else if member.isNamed("cutFrom") {
            try readCutFrom(member.value)
        } else if member.isNamed("limit") {
            // Beyond 64 bits, too, more is taken as the maximum.
            let number = member.value.int64 ?? member.value.double.flatMap { $0 > 0x1p62 ? .max : nil }
            guard let number, number >= 1 else {
                throw Self.invalid("limit is an integer from 1 on", member.value)
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
                throw Self.invalid("wait is a number of seconds from 0 on", member.value)
            }
            wait = .milliseconds(Int(min(seconds, Double(Self.maximumWait)) * 1000))
        } else if member.isNamed("include") {
            guard var elements = member.value.elements, member.value.count <= Self.maximumInclude else {
                throw Self.invalid("include is an array of at most \(Self.maximumInclude) batch numbers", member.value)
            }
            while let element = elements.next() { include.append(try Self.batchNumber(element, "include")) }
        }
    }

    private mutating func readKnowledge(_ value: borrowing JSONValue) throws(Problem) {
        guard var elements = value.elements else { throw Self.invalid("knowledge is no array", value) }
        while let element = elements.next() {
            guard let owner = element.member(named: "syncId"), let device = element.member(named: "knowledgeId"),
                let last = element.member(named: "lastTimeStamp"), element.repeatedMember == nil
            else {
                throw Self.invalid(
                    "an entry of knowledge has syncId, knowledgeId and lastTimeStamp, once each", element)
            }
            let syncID = try Self.owner(owner)
            guard let deviceText = device.string, let knowledgeID = KnowledgeID(utf8: Array(copying: deviceText)) else {
                throw Self.invalid("knowledgeId is a string of 1 to 255 bytes without NUL", device)
            }
            let timeStamp = try Self.timeStamp(last, "lastTimeStamp")
            guard knowledge.insert(timeStamp, for: knowledgeID, of: syncID) else {
                throw Self.invalid("knowledge names a pair twice", element)
            }
        }
    }

    private mutating func readCutFrom(_ value: borrowing JSONValue) throws(Problem) {
        if value.isNull { return }
        guard var elements = value.elements else { throw Self.invalid("cutFrom is no array", value) }
        while let element = elements.next() {
            guard let owner = element.member(named: "syncId"), let head = element.member(named: "head"),
                element.repeatedMember == nil
            else { throw Self.invalid("an entry of cutFrom has syncId and head, once each", element) }
            knowledge.insert(cutFrom: try Self.timeStamp(head, "head"), of: try Self.owner(owner))
        }
    }

    private static func owner(_ value: borrowing JSONValue) throws(Problem) -> SyncID {
        guard let text = value.string, let owner = SyncID(utf8: Array(copying: text)) else {
            throw invalid("syncId is a string of 1 to 255 bytes without NUL", value)
        }
        return owner
    }

    private static func timeStamp(_ value: borrowing JSONValue, _ name: String) throws(Problem) -> TimeStamp {
        guard let timeStamp = value.int64.flatMap(TimeStamp.init(rawValue:)) else {
            throw invalid("\(name) is an integer from 0 to 2^53-1", value)
        }
        return timeStamp
    }

    /// A device's name: `*` is none.
    static func device(_ value: borrowing JSONValue, _ name: String) throws(Problem) -> KnowledgeID {
        guard let text = value.string, let device = KnowledgeID(utf8: Array(copying: text)), device != .everyOther
        else {
            throw invalid("\(name) is a string of 1 to 255 bytes without NUL, and not *", value)
        }
        return device
    }

    private static func text(_ value: borrowing JSONValue, _ name: String) throws(Problem) -> String? {
        if value.isNull { return nil }
        guard let text = value.string, text.count <= 255 else {
            throw invalid("\(name) is a string of at most 255 bytes", value)
        }
        return String(decoding: Array(copying: text), as: UTF8.self)
    }

    private static func flag(_ value: borrowing JSONValue, _ name: String) throws(Problem) -> Bool {
        guard let flag = value.bool else { throw invalid("\(name) is true or false", value) }
        return flag
    }

    private static func batchNumber(_ value: borrowing JSONValue, _ name: String) throws(Problem) -> Int64 {
        guard let number = value.int64, number >= 1, number <= TimeStamp.maximum.rawValue else {
            throw invalid("\(name): a batch number is an integer from 1 to 2^53-1", value)
        }
        return number
    }

    private static func invalid(_ detail: String, _ value: borrowing JSONValue) -> Problem {
        Problem(.invalidRequest, detail, position: value.sourceRange.lowerBound)
    }

    private static func invalid(_ detail: String) -> Problem { Problem(.invalidRequest, detail) }
}

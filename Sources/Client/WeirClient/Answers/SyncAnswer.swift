/// The answer of `POST /v1/sync` and `POST /v1/pull`.
package struct SyncAnswer: Sendable {
    package private(set) var syncID = ""
    package private(set) var epoch = ""
    package private(set) var schemaVersion = ""
    /// The owners that the account may read, itself included.
    package private(set) var owners: [Owner] = []
    /// What became of the request's batch.
    package private(set) var batch: BatchOutcome?
    /// In the order of their timeStamps within an owner.
    package private(set) var changes: [ServerRow] = []
    /// Replaces the vector's entries of the owners that it names.
    package private(set) var knowledge: [KnowledgeEntry] = []
    package private(set) var hasMore = false
    /// The owners with rows left, and up to where their streams were read.
    package private(set) var cutFrom: [CutOwner] = []
    /// `cutFrom` as it came, for the next request.
    package private(set) var cutFromJSON: [UInt8]?
    /// Owners that are no longer granted.
    package private(set) var revoked: [String] = []
    /// Owners that are to be pulled from the start.
    package private(set) var resync: [String] = []

    /// Whether nothing is left to pull, or to send again, once it is applied.
    var isLast: Bool { !hasMore && resync.isEmpty && batch?.refusal == nil }

    package struct CutOwner: Equatable, Sendable {
        package let syncID: String
        package let head: Int64
    }

    private static let required: Set<String> = [
        "syncId", "epoch", "schemaVersion", "changes", "knowledge", "hasMore", "revoked", "resync",
    ]

    /// Reads an answer's body.
    ///
    /// - Throws: `JSONReader.Malformed` for one that is not of the contract.
    package init(json: [UInt8]) throws {
        var reader = JSONReader(json)
        var found: Set<String> = []
        try reader.object { reader, name in
            found.insert(name)
            switch name {
            case "syncId": syncID = try reader.string()
            case "epoch": epoch = try reader.string()
            case "schemaVersion": schemaVersion = try reader.string()
            case "owners": try reader.array { try readOwner(&$0) }
            case "batch": batch = try BatchOutcome(&reader)
            case "changes": try reader.array { changes.append(try ServerRow(&$0)) }
            case "knowledge": try reader.array { knowledge.append(try KnowledgeEntry(&$0)) }
            case "hasMore": hasMore = try reader.boolean()
            case "cutFrom": try readCut(&reader)
            case "revoked": try reader.array { revoked.append(try $0.string()) }
            case "resync": try reader.array { resync.append(try Self.member("syncId", of: &$0)) }
            default: try reader.skip()
            }
        }
        try reader.finish()
        try reader.require(Self.required, in: found)
    }

    /// Adds the rows of conflicts that the answer left out, from an answer of `GET /v1/batches/{batch}`.
    package mutating func addRows(_ json: [UInt8]) throws {
        var reader = JSONReader(json)
        var page: BatchOutcome?
        try reader.object { reader, name in
            if name == "batch" { page = try BatchOutcome(&reader) } else { try reader.skip() }
        }
        try reader.finish()
        guard let page, batch?.add(page) == true else { throw reader.malformed("rows of the batch") }
    }

    private mutating func readCut(_ reader: inout JSONReader) throws {
        if try reader.null() { return }
        let text = Array(try reader.text())
        cutFromJSON = text
        var part = JSONReader(text)
        try part.array { reader in
            var (syncID, head): (String?, Int64?)
            try reader.object { reader, name in
                switch name {
                case "syncId": syncID = try reader.string()
                case "head": head = try reader.timeStamp()
                default: try reader.skip()
                }
            }
            guard let syncID, let head else { throw reader.malformed("an owner and its head") }
            cutFrom.append(CutOwner(syncID: syncID, head: head))
        }
    }

    private mutating func readOwner(_ reader: inout JSONReader) throws {
        var (syncID, access): (String?, Access?)
        try reader.object { reader, name in
            switch name {
            case "syncId": syncID = try reader.string()
            case "access": access = Access(rawValue: try reader.string())
            default: try reader.skip()
            }
        }
        guard let syncID else { throw reader.malformed("an owner") }
        // An access that this code does not know is none to write.
        owners.append(Owner(syncID: syncID, access: access ?? .read))
    }

    /// A member of an object that is a string.
    private static func member(_ name: String, of reader: inout JSONReader) throws -> String {
        var found: String?
        try reader.object { reader, other in
            if other == name { found = try reader.string() } else { try reader.skip() }
        }
        guard let found else { throw reader.malformed(name) }
        return found
    }
}

/// An entry of a device's vector: up to where it has the rows that a device has created.
package struct KnowledgeEntry: Hashable, Sendable {
    package let syncID: String
    package let knowledgeID: String
    package let lastTimeStamp: Int64

    package init(syncID: String, knowledgeID: String, lastTimeStamp: Int64) {
        self.syncID = syncID
        self.knowledgeID = knowledgeID
        self.lastTimeStamp = lastTimeStamp
    }

    init(_ reader: inout JSONReader) throws {
        var (syncID, knowledgeID, lastTimeStamp): (String?, String?, Int64?)
        try reader.object { reader, name in
            switch name {
            case "syncId": syncID = try reader.string()
            case "knowledgeId": knowledgeID = try reader.string()
            case "lastTimeStamp": lastTimeStamp = try reader.timeStamp()
            default: try reader.skip()
            }
        }
        guard let syncID, let knowledgeID, let lastTimeStamp else { throw reader.malformed("an entry of a vector") }
        self.init(syncID: syncID, knowledgeID: knowledgeID, lastTimeStamp: lastTimeStamp)
    }
}

/// A row as the server has it.
package struct ServerRow: Equatable, Sendable {
    package let table: String
    package let id: String
    package let syncID: String
    package let timeStamp: Int64
    package let isDeleted: Bool
    /// A JSON object, part of the answer's bytes: it is read once, when it is written to the app's table.
    package let values: ArraySlice<UInt8>
    /// The row as it came.
    package let json: ArraySlice<UInt8>
    /// Who has written this version: a JSON object, which is read once for each of them.
    let writer: ArraySlice<UInt8>

    /// Reads a row.
    package init(_ reader: inout JSONReader) throws {
        var (table, id, syncID): (String?, String?, String?)
        var (timeStamp, isDeleted, values): (Int64?, Bool?, ArraySlice<UInt8>?)
        var writer: ArraySlice<UInt8> = []
        let start = reader.position
        try reader.object { reader, name in
            switch name {
            case "table": table = try reader.string()
            case "id": id = try reader.string()
            case "syncId": syncID = try reader.string()
            case "timeStamp": timeStamp = try reader.timeStamp()
            case "deleted": isDeleted = try reader.boolean()
            case "values": values = try reader.text()
            case "writer": writer = try reader.text()
            default: try reader.skip()
            }
        }
        guard let table, let id, let syncID, let timeStamp, let isDeleted, let values else {
            throw reader.malformed("a row with table, id, syncId, timeStamp, deleted and values")
        }
        (self.table, self.id, self.syncID) = (table, id, syncID)
        (self.timeStamp, self.isDeleted, self.values) = (timeStamp, isDeleted, values)
        json = reader.bytes(from: start)
        self.writer = writer
    }

    /// The account and the device that have written this version; `nil` if that is not said.
    func readWriter() throws -> (syncID: String, knowledgeID: String)? {
        if writer.isEmpty { return nil }
        var (syncID, knowledgeID): (String?, String?)
        var reader = JSONReader(writer)
        try reader.object { reader, name in
            switch name {
            case "syncId": syncID = try reader.string()
            case "knowledgeId": knowledgeID = try reader.string()
            default: try reader.skip()
            }
        }
        guard let syncID, let knowledgeID else { return nil }
        return (syncID, knowledgeID)
    }

    /// The device that has created the row; `nil` if that is not said.
    func readCreator() throws -> String? {
        var creator: String?
        var reader = JSONReader(json)
        try reader.object { reader, name in
            if name == "knowledgeId" { creator = try reader.string() } else { try reader.skip() }
        }
        return creator
    }

    /// Whether a device of an account has written this version.
    func isWritten(by device: String, of account: String) throws -> Bool {
        guard let writer = try readWriter() else { return false }
        return writer.syncID == account && writer.knowledgeID == device
    }
}

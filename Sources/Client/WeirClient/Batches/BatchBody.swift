import JSONText

/// The JSON body of a batch, while changes are added to it.
struct BatchBody {
    let number: Int64
    private let header: [UInt8]
    private var list: [UInt8] = []
    private(set) var changes = 0
    /// Whether a conflict or refusal of one change applies none.
    var isAtomic = false

    init(knowledgeID: String, schema: ServerSchema, number: Int64) {
        self.number = number
        var json = JSONWriter()
        json.beginObject()
        json.member("knowledgeId", knowledgeID)
        json.member("epoch", schema.epoch)
        json.member("schemaVersion", schema.schemaVersion)
        json.member("batch", number)
        header = json.take()
    }

    private static let atomic = Array(#","atomic":true"#.utf8)
    private static let begin = Array(#","changes":["#.utf8)
    private static let end = Array("]}".utf8)

    /// The bytes of a body with these changes alone, as if it were atomic.
    func bytes(of changes: [[UInt8]]) -> Int {
        header.count + Self.atomic.count + Self.begin.count + Self.end.count
            + changes.reduce(0) { $0 + $1.count + 1 }
    }

    /// The bytes of the body with one more change.
    func bytes(adding change: [UInt8]) -> Int { list.count + bytes(of: [change]) }

    mutating func append(_ change: [UInt8]) {
        if changes > 0 { list.append(UInt8(ascii: ",")) }
        list += change
        changes += 1
    }

    func finish() -> Batch {
        let body = header + (isAtomic ? Self.atomic : []) + Self.begin + list + Self.end
        return Batch(number: number, changes: changes, body: body)
    }
}

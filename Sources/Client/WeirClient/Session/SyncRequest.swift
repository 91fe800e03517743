import JSONText

/// The body of `POST /v1/sync` and `POST /v1/pull`.
struct SyncRequest {
    /// A vector with more entries is asked for in the short form: one entry for each owner that has nothing left.
    static let mostEntries = 48

    let knowledgeID: String
    let epoch: String?
    /// As the server last gave it with that epoch; a batch has that of its freezing.
    var schemaVersion: String?
    var batch: Batch?
    var knowledge: [KnowledgeEntry] = []
    /// As the last answer had it.
    var cutFrom: [UInt8]?
    let limit: Int

    init(knowledgeID: String, epoch: String?, limit: Int) {
        self.knowledgeID = knowledgeID
        self.epoch = epoch
        self.limit = limit
    }

    /// The request; a batch is in it as it was frozen.
    func json() -> [UInt8] {
        var head: [UInt8]
        if let batch {
            head = Array(batch.body.dropLast())
        } else {
            var json = JSONWriter()
            json.beginObject()
            json.member("knowledgeId", knowledgeID)
            if let epoch { json.member("epoch", epoch) }
            if let schemaVersion { json.member("schemaVersion", schemaVersion) }
            head = json.take()
        }
        head.append(UInt8(ascii: ","))
        return head + rest.dropFirst()
    }

    /// How many bytes the request has besides the batch.
    var overhead: Int { rest.count }

    /// What a request has with and without a batch, as an object.
    private var rest: [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.name("knowledge")
            json.array { json in
                for entry in knowledge {
                    json.object { json in
                        json.member("syncId", entry.syncID)
                        json.member("knowledgeId", entry.knowledgeID)
                        json.member("lastTimeStamp", entry.lastTimeStamp)
                    }
                }
            }
            json.member("limit", limit)
            if knowledge.count > Self.mostEntries { json.member("compact", true) }
            if let cutFrom {
                json.name("cutFrom")
                json.raw(cutFrom)
            }
        }
        return json.take()
    }
}

import JSONText

/// Requests as bytes, head and body, encoded before the time is measured.
struct Requests: Sendable {
    /// The caller's syncId and the device's knowledgeId; both of letters and digits.
    let owner: String
    let device: String
    /// A bearer token of the caller; `nil`: the header X-Sync-Id names it.
    var token: String?

    private var identity: String { token.map { "Authorization: Bearer \($0)" } ?? "X-Sync-Id: \(owner)" }

    /// `POST /v1/upload` of a batch.
    func upload(batch: Int, of rows: some Sequence<Workload.Row>) -> [UInt8] {
        var body = Array(#"{"knowledgeId":"\#(device)","batch":\#(batch),"changes":["#.utf8)
        Workload.write(rows, to: &body)
        body += "]}".utf8
        return post("/v1/upload", body)
    }

    /// `POST /v1/upload` of changes as JSON, without a batch number where there is none.
    ///
    /// - Parameter waitSeconds: how long the answer may wait for the outcome.
    func upload(
        batch: Int? = nil, changes: [UInt8], isAtomic: Bool = false, waitSeconds: Int = 0
    ) -> [UInt8] {
        var body = Array(#"{"knowledgeId":"\#(device)","#.utf8)
        if let batch { body += #""batch":\#(batch),"#.utf8 }
        if isAtomic { body += #""atomic":true,"#.utf8 }
        body += #""changes":["#.utf8
        body += changes
        body += "]}".utf8
        return post("/v1/upload", body, headers: waitSeconds > 0 ? "Prefer: wait=\(waitSeconds)\r\n" : "")
    }

    /// `POST /v1/sync` of a batch, and a pull of everything above a floor.
    func sync(batch: Int, of rows: some Sequence<Workload.Row>, above floor: Int) -> [UInt8] {
        var body = Array(#"{"knowledgeId":"\#(device)","batch":\#(batch),"compact":true,"knowledge":"#.utf8)
        body += Self.floor(owner, floor)
        body += #","changes":["#.utf8
        Workload.write(rows, to: &body)
        body += "]}".utf8
        return post("/v1/sync", body)
    }

    /// `POST /v1/pull` of everything above a floor.
    func pull(
        above floor: Int = 0, limit: Int = 1, waitSeconds: Int = 0, including batch: Int? = nil,
        acceptsGzip: Bool = false
    ) -> [UInt8] {
        pull(
            knowledge: Self.floor(owner, floor), limit: limit, waitSeconds: waitSeconds, including: batch,
            acceptsGzip: acceptsGzip)
    }

    private static func floor(_ owner: String, _ timeStamp: Int) -> String.UTF8View {
        #"[{"syncId":"\#(owner)","knowledgeId":"*","lastTimeStamp":\#(timeStamp)}]"#.utf8
    }

    /// `POST /v1/pull` of what follows a page.
    func pull(after page: PullAnswer, limit: Int) -> [UInt8] {
        pull(knowledge: page.knowledge, cutFrom: page.cutFrom, limit: limit)
    }

    /// `POST /v1/pull` with a vector as JSON.
    func pull(
        knowledge: some Sequence<UInt8>, cutFrom: ArraySlice<UInt8>? = nil, limit: Int, waitSeconds: Int = 0,
        including batch: Int? = nil, acceptsGzip: Bool = false
    ) -> [UInt8] {
        var body = Array(#"{"knowledgeId":"\#(device)","compact":true,"limit":\#(limit)"#.utf8)
        if waitSeconds > 0 { body += #","wait":\#(waitSeconds)"#.utf8 }
        if let batch { body += #","include":[\#(batch)]"#.utf8 }
        body += #","knowledge":"#.utf8
        body += knowledge
        if let cutFrom {
            body += #","cutFrom":"#.utf8
            body += cutFrom
        }
        body += "}".utf8
        return post("/v1/pull", body, headers: acceptsGzip ? "Accept-Encoding: gzip\r\n" : "")
    }

    /// `GET /v1/watch`.
    func watch() -> [UInt8] {
        Array("GET /v1/watch HTTP/1.1\r\nHost: 127.0.0.1\r\n\(identity)\r\n\r\n".utf8)
    }

    /// A request without a body to a face.
    func face(_ path: String) -> [UInt8] {
        Array("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n\(identity)\r\nX-Device-Id: \(device)\r\n\r\n".utf8)
    }

    /// A request with a body to a face.
    func face(_ path: String, _ body: [UInt8]) -> [UInt8] {
        post(path, body, headers: "X-Device-Id: \(device)\r\n")
    }

    /// - Parameter headers: further lines, each with its end.
    func post(_ path: String, _ body: [UInt8], headers: String = "") -> [UInt8] {
        var request = Array("POST \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n\(identity)\r\n\(headers)".utf8)
        request += "Content-Type: application/json\r\nContent-Length: \(body.count)\r\n\r\n".utf8
        request += body
        return request
    }
}

/// What a device must know of a pull's answer to go on; the rows are not decoded.
struct PullAnswer {
    /// The vector for the next pull, as JSON.
    let knowledge: ArraySlice<UInt8>
    /// Whether there is more.
    let hasMore: Bool
    /// The heads that the answer was cut from, as JSON: the next pull names them; `nil` where it names none.
    let cutFrom: ArraySlice<UInt8>?

    /// Looks at the end of an answer, where both stand.
    init(_ body: ArraySlice<UInt8>) throws(BenchmarkFailure) {
        guard let start = body.lastRange(of: #""knowledge":["#),
            let end = body.firstRange(of: #"],"hasMore":"#, from: start.upperBound)
        else { throw BenchmarkFailure("the answer to a pull has no vector") }
        knowledge = body[(start.upperBound - 1)...end.lowerBound]
        hasMore = body[end.upperBound] == UInt8(ascii: "t")
        let named = body.firstRange(of: #","cutFrom":["#, from: end.upperBound)
        cutFrom = named.map { body[($0.upperBound - 1)..<(body.endIndex - 1)] }
    }

    /// The number of the first entry, which of a drained pull with `compact` is all there is.
    var head: Int {
        knowledge.lastRange(of: #""lastTimeStamp":"#).map { knowledge.number(from: $0.upperBound) } ?? 0
    }

    /// The rows in an answer, counted by what each of them has once.
    static func rows(in body: ArraySlice<UInt8>) -> Int {
        var count = 0
        var place = body.startIndex
        while let found = body.firstRange(of: #""timeStamp":"#, from: place) {
            count += 1
            place = found.upperBound
        }
        return count
    }
}

/// Pulls an owner's rows to the end.
struct Drain {
    let requests: Requests
    let limit: Int

    /// Pulls page after page on one connection.
    ///
    /// - Parameter page: gets each answer's body.
    func run(on connection: LoadConnection, _ page: (ArraySlice<UInt8>) -> Void) throws {
        var request = requests.pull(limit: limit)
        while true {
            let next: [UInt8]? = try connection.exchange(request) { status, body in
                try LoadConnection.check(status, body, 200)
                page(body)
                let answer = try PullAnswer(body)
                return answer.hasMore ? requests.pull(after: answer, limit: limit) : nil
            }
            guard let next else { return }
            request = next
        }
    }

    /// The number of an owner's rows.
    static func count(of owner: String, on server: ServerProcess) async throws -> Int {
        let port = server.port
        return try await LoadThreads.run {
            var rows = 0
            let drain = Drain(requests: Requests(owner: owner, device: "counter"), limit: 10_000)
            try drain.run(on: LoadConnection(port: port)) { rows += PullAnswer.rows(in: $0) }
            return rows
        }
    }
}

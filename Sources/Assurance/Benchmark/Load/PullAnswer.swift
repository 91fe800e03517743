import Glibc
import LoadTools

/// What a device needs of the answer to a pull for the next one; rows are not decoded.
struct PullAnswer {
    /// The vector for the next pull, as JSON.
    let knowledge: ArraySlice<UInt8>
    let hasMore: Bool
    /// The heads of the streams that the answer was cut from, as JSON, which the next pull sends; `nil` where there are none.
    let cutFrom: ArraySlice<UInt8>?

    /// Parses the end of an answer, where all of it is.
    init(_ body: ArraySlice<UInt8>) throws(LoadFailure) {
        guard let start = body.lastRange(of: #""knowledge":["#),
            let end = body.firstRange(of: #"],"hasMore":"#, from: start.upperBound)
        else { throw LoadFailure("the answer to a pull has no vector") }
        knowledge = body[(start.upperBound - 1)...end.lowerBound]
        hasMore = body[end.upperBound] == UInt8(ascii: "t")
        let named = body.firstRange(of: #","cutFrom":["#, from: end.upperBound)
        cutFrom = named.map { body[($0.upperBound - 1)..<(body.endIndex - 1)] }
    }

    /// The head in the first entry of the vector; a drained pull with `compact` has no other.
    var head: Int {
        knowledge.lastRange(of: #""lastTimeStamp":"#).map { knowledge.number(from: $0.upperBound) } ?? 0
    }

    /// The number of rows in an answer, counted by their timeStamps.
    static func rows(in body: ArraySlice<UInt8>) -> Int { body.count(of: #""timeStamp":"#) }
}

extension ArraySlice<UInt8> {
    /// How often a text occurs; fast enough not to count in the time of a long answer.
    func count(of text: StaticString) -> Int {
        withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return 0 }
            let size = text.utf8CodeUnitCount
            var count = 0
            var offset = 0
            while offset + size <= bytes.count,
                let found = memchr(start + offset, Int32(text.utf8Start[0]), bytes.count - offset - size + 1)
            {
                let isText = memcmp(found, text.utf8Start, size) == 0
                count += isText ? 1 : 0
                offset = UnsafeRawPointer(found) - start + (isText ? size : 1)
            }
            return count
        }
    }
}

struct Drain {
    let requests: Requests
    let limit: Int

    /// - Parameter page: called with each answer's body.
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

    /// The number of an owner's rows on the server.
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

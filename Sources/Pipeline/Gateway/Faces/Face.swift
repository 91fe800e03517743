import DeviceRegistry
import HTTP
import JSON
import JSONText
import OwnerFileStore
import SyncModel

/// A protocol beside the client contract, for clients that speak another one: it turns their requests into changes, and into reads
/// of their callers' rows.
///
/// It has no tables, no log and no ordering rules of its own. What must be decided without a race is a condition of a change, such as
/// ``SyncModel/Change/ifUnchanged``. It serves the caller's own syncId alone: a position that is one number cannot cover owners that
/// have no common order.
package protocol Face: Sendable {
    /// The first segment of the path of all its routes.
    var prefix: String { get }

    /// All its routes; the first that matches a path counts.
    var routes: [FaceRoute] { get }

    /// Why tables of a schema cannot be served, for operators; `nil` if they can.
    func problem(with schema: Schema) -> String?

    /// Responds to a request whose caller is authenticated, and may send it, and whose device is known.
    ///
    /// - Throws: ``Problem``, or an error of the session.
    func respond(to request: FaceRequest, _ session: any FaceSession) async throws -> HTTPResponse

    /// Responds where nothing must be waited for or read, as at an idle device; `nil` otherwise.
    func respondAtOnce(to request: FaceRequest, _ session: any FaceSession) throws(Problem) -> HTTPResponse?

    /// The response for a problem, also for one that the gateway found before the face saw the request.
    func response(to problem: Problem) -> HTTPResponse
}

extension Face {
    package func respondAtOnce(
        to request: FaceRequest, _ session: any FaceSession
    ) throws(Problem) -> HTTPResponse? { nil }

    package func response(to problem: Problem) -> HTTPResponse { problem.response }
}

/// A path of a face with its methods.
package struct FaceRoute: Sendable {
    /// As in an OpenAPI document: `/rest/{table}`; a name in braces stands for one segment, not empty.
    package let template: String
    /// Besides OPTIONS; GET includes HEAD.
    package let methods: [HTTPMethod]
    /// Whether the body of a PUT is a file of any media type, which the face receives as it arrives.
    package let takesFile: Bool
    let segments: [Segment]

    enum Segment: Sendable, Hashable {
        case literal(String)
        case parameter
    }

    package init(_ template: String, _ methods: [HTTPMethod], takesFile: Bool = false) {
        self.template = template
        self.takesFile = takesFile
        self.methods = methods.contains(.get) ? methods + [.head] : methods
        segments = template.split(separator: "/").map {
            $0.hasPrefix("{") && $0.hasSuffix("}") ? .parameter : .literal(String($0))
        }
    }

    /// The value of the header `Allow`.
    var allow: String { (methods + [.options]).map(\.description).joined(separator: ", ") }

    /// The segments that stand for the names in braces; `nil` for another path.
    package func parameters(in path: [String]) -> [String]? {
        guard path.count == segments.count else { return nil }
        var parameters: [String] = []
        for (segment, given) in zip(segments, path) {
            switch segment {
            case .literal(let text): guard text.utf8.elementsEqual(given.utf8) else { return nil }
            case .parameter:
                if given.isEmpty { return nil }
                parameters.append(given)
            }
        }
        return parameters
    }
}

/// A request to a route of a face.
package struct FaceRequest: Sendable {
    package let http: HTTPRequest
    package let route: FaceRoute
    /// What the path has for the names in braces.
    package let parameters: [String]

    package init(http: HTTPRequest, route: FaceRoute, parameters: [String]) {
        self.http = http
        self.route = route
        self.parameters = parameters
    }

    package var method: HTTPMethod { http.method == .head ? .get : http.method }

    /// The value of a query item; `nil` where there is none.
    ///
    /// - Throws: ``ProblemCode/invalidRequest`` where it is repeated.
    package func query(_ name: String) throws(Problem) -> String? {
        let values = http.query.filter { $0.name.utf8.elementsEqual(name.utf8) }
        guard values.count <= 1 else { throw Problem(.invalidRequest, "the query has \(name) twice") }
        return values.first?.value
    }

    /// A query item that is a number of a range; `nil` where there is none.
    package func number(_ name: String, in range: ClosedRange<Int64>) throws(Problem) -> Int64? {
        guard let text = try query(name) else { return nil }
        guard let number = Int64(text), range.contains(number) else {
            throw Problem(
                .invalidRequest, "\(name) must be a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
}

/// A piece of a long answer.
package struct FacePiece: Sendable {
    package let bytes: [UInt8]
    /// Whether the answer ends with it.
    package let isLast: Bool

    package init(_ bytes: [UInt8], isLast: Bool) {
        self.bytes = bytes
        self.isLast = isLast
    }
}

/// What a face may do for the caller and the device of one request.
package protocol FaceSession: Sendable {
    /// The device that sends the request; its caller is the owner of all rows.
    var device: Device { get }
    /// The newest version.
    var schema: SchemaHistory.Entry { get }
    var limits: SyncLimits { get }
    /// Identifies this history: positions of another one mean nothing.
    var epoch: String { get }
    /// Microseconds since 1970.
    var now: Int64 { get }

    /// Parses a body.
    ///
    /// - Throws: ``ProblemCode/malformedJSON``, and what `read` throws.
    func parse<Result>(
        _ body: HTTPBody, _ read: (borrowing JSONValue) throws(Problem) -> Result
    ) throws(Problem) -> Result

    /// Appends changes to the log as one batch without a number, and waits for its outcome.
    ///
    /// A repeat of it is applied again: the conditions of its changes, their `changeId` or ids made of their content must make that
    /// harmless. All limits of uploads apply.
    ///
    /// - Throws: ``ProblemCode/outcomePending`` with status 503 where it is durable and its outcome not known in time.
    func submit(_ batch: FaceBatch) async throws -> FaceOutcome

    /// Reads rows of the caller, as many as one turn of a reader may; the answer says what is left.
    ///
    /// - Parameters:
    ///   - leastHead: a timeStamp that the caller's stream must have reached, as one that the device was shown.
    /// - Throws: ``ProblemCode/positionAhead`` where no stream can ever reach it.
    func rows(
        _ selection: StreamSelection, limit: Int, leastHead: TimeStamp
    ) async throws -> (rows: [FaceRow], rest: StreamSelection?, head: TimeStamp)

    /// Whether the caller's stream ends at a timeStamp, as far as that is known without waiting.
    func isDrained(at timeStamp: TimeStamp) -> Bool

    /// Responds with pieces that are made one after the other, while the client reads.
    ///
    /// The first is made before the response begins, so that its failure is a response of its own, and one that is also the last
    /// is sent as a whole. The connection is broken off where a later one fails, or where the client does not read.
    ///
    /// - Parameter next: makes the next piece, small enough to be in memory; not called after the last.
    func stream(
        _ headers: [HTTPField], _ next: @escaping @Sendable () async throws -> FacePiece
    ) async throws -> HTTPResponse

    /// The caller's file; `nil` if there is none.
    ///
    /// - Throws: ``ProblemCode/notFound`` where files are not kept, as all of the following.
    func file() async throws -> OwnerFile?

    /// Receives the request's body and makes it the caller's file, unless that one has newer rows.
    ///
    /// The bytes count for the rates as they arrive, and the client waits where they are reached.
    ///
    /// - Parameters:
    ///   - newest: up to where it has the caller's rows.
    ///   - digest: its SHA-256.
    /// - Throws: ``ProblemCode/digestMismatch``; then the file is not kept.
    func receiveFile(of request: FaceRequest, newest: TimeStamp, digest: [UInt8]) async throws -> OwnerFileCommit

    /// Responds with some bytes of a file; the connection is broken off if it is replaced meanwhile.
    func send(
        _ range: Range<Int>, of file: OwnerFile, status: Int, _ headers: [HTTPField]
    ) async throws -> HTTPResponse

    /// Removes the caller's file, and what devices are uploading.
    ///
    /// - Returns: whether there was one.
    func removeFile() async throws -> Bool

    /// Positions that were noted of the device, by name.
    ///
    /// They only rise. One that is lost, as when a process is killed, falls back to an earlier one.
    ///
    /// - Parameter isFresh: also those that other gateways have written since this one read them.
    func positions(isFresh: Bool) async throws -> [String: Int64]

    /// Positions that were noted of another device of the caller, also by other gateways.
    func positions(of knowledgeID: KnowledgeID) async throws -> [String: Int64]

    /// Whether other gateways note positions of the same devices.
    var sharesPositions: Bool { get }

    /// What this gateway has in memory of a position; `nil` if it has nothing.
    func knownPosition(_ name: String) -> Int64?

    /// Raises positions of the device.
    ///
    /// - Parameter isDurable: returns once they are stored; others are written later, many together.
    func raise(_ positions: [String: Int64], isDurable: Bool) async throws

    /// Registers what the device says of itself; all gateways list it when this returns.
    func describe(_ description: DeviceDescription) async throws

    /// Looks at each of the caller's devices, with what this gateway has seen of them until now, and other gateways a while ago.
    ///
    /// There may be ten thousand, of which some hundred are in memory at a time.
    ///
    /// - Parameters:
    ///   - isKeeping: whether the response has something of each, which then counts as its bytes from the beginning.
    func devices(isKeeping: Bool, _ body: (RegisteredDevice) -> Void) async throws
}

extension FaceSession {
    /// The rows of ``rows(_:limit:leastHead:)``, or those that follow some that were read: in a stream that has reached what that one
    /// had, since in another, rows that have moved are neither here nor there.
    ///
    /// - Parameter head: what the stream had in which the rows before were read; `nil` at the beginning.
    /// - Throws: ``ProblemCode/notReady`` where no stream can ever reach it: the device has named no position that it could give up.
    package func rows(
        _ selection: StreamSelection, limit: Int, leastHead: TimeStamp, continuing head: TimeStamp?
    ) async throws -> (rows: [FaceRow], rest: StreamSelection?, head: TimeStamp) {
        guard let head else { return try await rows(selection, limit: limit, leastHead: leastHead) }
        do {
            return try await rows(selection, limit: limit, leastHead: head)
        } catch let problem as Problem where problem.code == .positionAhead {
            throw Problem(.notReady, "the history was replaced while rows were read: send the request again")
        }
    }

    /// The names of the tables, parents first.
    package func listOfTables() -> HTTPResponse {
        let schema = schema.schema
        let order = zip(schema.ranks, schema.tables.indices).sorted { $0 < $1 }.map(\.1)
        var writer = JSONWriter(capacity: 256)
        writer.array { writer in
            for index in order { writer.value(schema.tables[index].name) }
        }
        return .uncached(200, writer.take())
    }
}

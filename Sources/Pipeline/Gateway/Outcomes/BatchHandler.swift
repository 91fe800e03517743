import FanOutLink
import HTTP
import SyncModel

/// `GET /v1/batches/{batch}`.
extension GatewayHandler {
    /// Responds with the outcome of a batch, or with 202 while only its upload is known.
    func batch(_ request: HTTPRequest, _ caller: Caller) throws(Problem) -> HTTPHandlerResult {
        let (batch, device, rowsFrom) = try counting(caller) { () throws(Problem) in
            let read = try Self.read(request, caller)
            try checkRevoked(read.1)
            return read
        }
        let status = try rates.take(.pull, of: caller.syncID, device)
        note(device, of: caller)
        return inTask(of: device) {
            var response = try await self.outcome(of: batch, device, caller, rowsFrom: rowsFrom)
            response.headers.append(HTTPField("Cache-Control", "no-store"))
            return response
        }.adding(status)
    }

    private static func read(
        _ request: HTTPRequest, _ caller: Caller
    ) throws(Problem) -> (batch: Int64, Device, rowsFrom: Int?) {
        let number = request.segments[2]
        guard number.utf8.count <= 16, let batch = decimal(number), batch >= 1, batch <= TimeStamp.maximum.rawValue
        else {
            throw Problem(.invalidRequest, "a batch number must be an integer from 1 to 2^53-1")
        }
        let named = request.query.filter { $0.name.utf8.elementsEqual("knowledgeId".utf8) }
        guard named.count == 1, let knowledgeID = KnowledgeID(named[0].value), knowledgeID != .everyOther else {
            throw Problem(
                .invalidRequest,
                "the query must name the device exactly once: knowledgeId=…, 1 to 255 bytes without NUL, and not *")
        }
        try caller.check(knowledgeID)
        let device = Device(caller: caller.syncID, knowledgeID: knowledgeID)
        return (batch, device, try rowsFrom(request))
    }

    /// The index of the first change whose row is requested; `nil` when the results are requested.
    private static func rowsFrom(_ request: HTTPRequest) throws(Problem) -> Int? {
        let named = request.query.filter { $0.name.utf8.elementsEqual("rowsFrom".utf8) }
        guard let first = named.first else { return nil }
        guard named.count == 1, let index = Self.decimal(first.value), index <= Int32.max else {
            throw Problem(.invalidRequest, "rowsFrom must be the index of a change, from 0, given once")
        }
        return Int(index)
    }

    /// A number of digits alone: `Int64` accepts a sign, too.
    private static func decimal(_ text: some StringProtocol) -> Int64? {
        text.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 } ? Int64(text) : nil
    }

    private func outcome(
        of batch: Int64, _ device: Device, _ caller: Caller, rowsFrom: Int?
    ) async throws -> HTTPResponse {
        let upload = pending.upload(of: batch, by: device)
        let space = try await reservePage(
            for: device, until: clock.now() + configuration.outcomeWait, isRefusable: rowsFrom != nil)
        defer { release(space, of: device) }
        let maximum = min(configuration.pageBytes, space.tokens.limits.bytes)
        let rows = ShownRows(for: caller, from: rowsFrom ?? 0, maximumBytes: maximum)
        do throws(FanOutError) {
            if let outcome = try await known(batch, of: upload, device, rows) {
                pending.remove(batch, of: device)
                var response = respond(outcome, rowsFrom == nil ? .results : .rows)
                response.reservation = space.reservation
                return response
            }
        } catch {
            // The caller's own part is ordered, another owner's is not.
            guard error == .pending else { throw error }
            return accepted(batch)
        }
        guard upload != nil else {
            throw Problem(.notFound, "no outcome of this batch is known: send it again with the same number")
        }
        return accepted(batch)
    }

    /// The outcome of an upload, including a refusal of the whole batch, which is not kept; or the one that is kept of the batch.
    ///
    /// Neither is waited for.
    ///
    /// - Parameters:
    ///   - batch: `nil` where the device gave none.
    ///   - upload: the last one with this number; `nil` where it is not known.
    /// - Returns: `nil` if the fan-out does not know it yet, or no longer.
    func known(
        _ batch: Int64?, of upload: UploadReference?, _ device: Device, _ rows: ShownRows
    ) async throws(FanOutError) -> BatchOutcome? {
        if let upload {
            do throws(FanOutError) {
                return try await outcomes.outcome(of: upload, device: device, batch: batch, rows: rows, until: .zero)
            } catch {
                guard error == .pending else { throw error }
            }
        }
        guard let batch else { return nil }
        return try await outcomes.keptOutcome(of: batch, device: device, rows: rows, until: .zero)
    }
}

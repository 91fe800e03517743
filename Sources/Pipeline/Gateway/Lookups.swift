import FanOutLink
import HTTP
import SyncModel

/// The exchanges that only look: `/v1/batches/{batch}`, `/v1/watch`, `/v1/schema`, `/openapi.json`.
extension GatewayHandler {
    /// The outcome of a batch, or whether the log has it.
    func batch(_ request: HTTPRequest, _ caller: Caller) throws(Problem) -> HTTPAnswer {
        let number = request.segments[2]
        guard number.utf8.count <= 16, number.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let batch = Int64(number),
            batch >= 1, batch <= TimeStamp.maximum.rawValue
        else {
            throw Problem(.invalidRequest, "a batch number is an integer from 1 to 2^53-1")
        }
        let named = request.query.filter { $0.name.utf8.elementsEqual("knowledgeId".utf8) }
        guard named.count == 1, let knowledgeID = KnowledgeID(named[0].value), knowledgeID != .everyOther else {
            throw Problem(.invalidRequest, "the query names the device once: knowledgeId=…, 1 to 255 bytes, and not *")
        }
        let device = Device(caller: caller.syncID, knowledgeID: knowledgeID)
        return inTask {
            var response = try await self.outcome(of: batch, device, caller)
            response.headers.append(HTTPField("Cache-Control", "no-store"))
            return response
        }
    }

    private func outcome(of batch: Int64, _ device: Device, _ caller: Caller) async throws -> HTTPResponse {
        let upload = pending.upload(of: batch, by: device)
        do throws(FanOutError) {
            if let answer = try await verdict(on: upload, batch, device) {
                pending.remove(batch, of: device)
                return respond(answer, caller: caller)
            }
            if let answer = try await outcomes.keptOutcome(of: batch, device: device, until: .zero) {
                pending.remove(batch, of: device)
                return respond(answer, caller: caller)
            }
        } catch {
            // Its own part is ordered, another owner's is not.
            guard error == .pending else { throw error }
            return accepted(batch)
        }
        guard upload != nil else {
            throw Problem(.notFound, "no outcome of this batch is known: send it again with the same number")
        }
        return accepted(batch)
    }

    /// What became of the upload that came last under this number, a refusal of the whole included, which nobody keeps; `nil`
    /// where the fan-out cannot tell (any more).
    private func verdict(
        on upload: UploadReference?, _ batch: Int64, _ device: Device
    ) async throws(FanOutError) -> BatchAnswer? {
        guard let upload else { return nil }
        do throws(FanOutError) {
            return try await outcomes.outcome(of: upload, device: device, batch: batch, until: .zero)
        } catch {
            guard error == .pending else { throw error }
            return nil
        }
    }

    /// Server-sent events of the heads of every granted owner.
    func watch(_ request: HTTPRequest, _ caller: Caller) -> HTTPAnswer {
        let headers = [HTTPField("Content-Type", "text/event-stream"), HTTPField("Cache-Control", "no-store")]
        if request.method == .head { return .response(HTTPResponse(status: 200, headers: headers)) }
        return inTask {
            HTTPResponse(status: 200, headers: headers, stream: try await self.watchers.watch(caller, over: self.link))
        }
    }

    /// The newest schema version and the limits; its ETag names all that they depend on.
    func schema(_ request: HTTPRequest) throws(Problem) -> HTTPResponse {
        let newest = try newestSchema()
        let numbers = [
            limits.maxBatchBytes, limits.maxChanges, limits.maxValueBytes,
            Int(configuration.keepAlive.components.seconds),
        ]
        let tag = "W/\"\(newest.version.hash)-\(history.epoch)-\(numbers.map(String.init).joined(separator: "."))\""
        let headers = [HTTPField("ETag", tag), HTTPField("Cache-Control", "no-cache")]
        if let known = request.headers.text(of: "if-none-match"), Self.matches(known, tag) {
            return HTTPResponse(status: 304, headers: headers)
        }
        var response = HTTPResponse.json(
            200,
            SchemaAnswer.body(
                epoch: history.epoch, entry: newest, limits: limits, keepAlive: configuration.keepAlive))
        response.headers += headers
        return response
    }

    /// Whether `If-None-Match` names a tag, compared weakly (RFC 9110, 13.1.2).
    private static func matches(_ header: String, _ tag: String) -> Bool {
        header.utf8.split(separator: UInt8(ascii: ",")).contains { part in
            var candidate = part.drop { $0 == UInt8(ascii: " ") }
            while candidate.last == UInt8(ascii: " ") { candidate.removeLast() }
            let opaque = candidate.starts(with: "W/".utf8) ? candidate.dropFirst(2) : candidate
            return opaque.elementsEqual(tag.utf8.dropFirst(2)) || candidate.elementsEqual("*".utf8)
        }
    }
}

/// The header `Prefer` (RFC 7240).
enum Preference {
    /// The seconds of `wait=N`, at most those of a long poll; `nil` when there is no such preference.
    static func wait(of request: HTTPRequest) -> Duration? {
        for header in request.headers.all("prefer") {
            for preference in String(decoding: header, as: UTF8.self).split(whereSeparator: { $0 == "," || $0 == ";" })
            {
                let parts = preference.split(separator: "=", maxSplits: 1)
                guard parts.count == 2, parts[0].filter({ $0 != " " }).lowercased().utf8.elementsEqual("wait".utf8),
                    let seconds = Int(parts[1].filter { $0 != " " && $0 != "\"" }), seconds >= 0
                else { continue }
                return .seconds(min(seconds, Envelope.maximumWait))
            }
        }
        return nil
    }
}

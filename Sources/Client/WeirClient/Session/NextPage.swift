/// The next page of a pull, asked for while the one before is applied.
///
/// Its request is the one that follows if nothing happens meanwhile. A session uses the response if that is what it then sends, and
/// drops it otherwise: where the app has written something, or the page before cannot be taken over as a whole. It also drops one that was
/// asked for with another token, of whose account the answer says nothing about the present one.
struct NextPage {
    private let request: [UInt8]
    private let caller: Server.Caller
    /// Parsed as soon as it is there, beside the queue on which rows are written.
    private let answer: Task<SyncAnswer, any Error>

    /// Asks for the page that follows an answer; `nil` if none does, or if it will be asked for with the next batch.
    init?(after answer: SyncAnswer, of request: SyncRequest, _ server: Server, _ caller: Server.Caller) {
        guard answer.hasMore, request.batch == nil, answer.resync.isEmpty else { return nil }
        let body = request.next(after: answer).json()
        self.request = body
        self.caller = caller
        self.answer = Task {
            try Weir.answer(in: try await server.send("POST", "v1/pull", body: body, as: caller))
        }
    }

    /// Waits for the answer.
    ///
    /// - Returns: `nil` if it is that of another request than this, or of another token.
    func answer(to request: SyncRequest, as caller: Server.Caller) async throws -> SyncAnswer? {
        guard request.batch == nil, caller.hasToken(of: self.caller), request.json() == self.request else {
            await end()
            return nil
        }
        return try await withTaskCancellationHandler {
            try await answer.value
        } onCancel: {
            answer.cancel()
        }
    }

    /// Drops the response; a device has one request under way.
    func end() async {
        answer.cancel()
        _ = await answer.result
    }
}

extension SyncRequest {
    /// The request that follows an answer which is applied as it came.
    fileprivate func next(after answer: SyncAnswer) -> SyncRequest {
        var next = SyncRequest(knowledgeID: knowledgeID, epoch: answer.epoch, limit: limit)
        let replaced = Set(answer.knowledge.map(\.syncID)).union(answer.revoked)
        let entries = knowledge.filter { !replaced.contains($0.syncID) } + answer.knowledge
        // As the file has them.
        next.knowledge = entries.sorted {
            $0.syncID == $1.syncID
                ? $0.knowledgeID.utf8.lexicographicallyPrecedes($1.knowledgeID.utf8)
                : $0.syncID.utf8.lexicographicallyPrecedes($1.syncID.utf8)
        }
        next.cutFrom = answer.cutFromJSON
        next.schemaVersion = answer.schemaVersion
        return next
    }
}

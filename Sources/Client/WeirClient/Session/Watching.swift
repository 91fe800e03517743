import Foundation

extension Weir {
    /// Reads the server's event stream until it ends.
    ///
    /// It does not keep the Weir, which an app ends with its last reference.
    ///
    /// - Parameters:
    ///   - weir: the Weir, while there is one.
    ///   - event: is called for each piece of the stream, with whether it names rows that the file lacks.
    package static func watch(
        _ weir: @Sendable () -> Weir?, _ event: @Sendable (_ hasMoved: Bool) async -> Void
    ) async throws {
        guard let stream = try await weir()?.openEvents() else { throw CancellationError() }
        var parser = EventParser()
        for try await piece in stream.pieces {
            var hasMoved = false
            for message in try parser.read(piece) where message.name == "head" {
                let head = try JSONDecoder().decode(Head.self, from: Data(message.data.utf8))
                if try await weir()?.isNew(head) ?? false { hasMoved = true }
            }
            await event(hasMoved)
        }
        try Task.checkCancellation()
    }

    private func openEvents() async throws -> TransportStream {
        let server = try attached.server
        let keepAlive = try SessionRecord(database: openFile.database).schema()?.limits.keepAlive ?? 15
        // A server that is silent for three comments is gone.
        return try await server.open("v1/watch", timeout: 3 * TimeInterval(keepAlive), as: server.caller())
    }

    /// The newest timeStamp of an owner's rows.
    private struct Head: Decodable {
        let syncId: String
        let head: Int64
    }

    /// Whether an owner has rows that the file may lack.
    ///
    /// Pages are in the order of timeStamps, so a vector that has come as far has everything before; where a session has failed,
    /// another one is due anyway.
    private func isNew(_ head: Head) throws -> Bool {
        let known = try openFile.knowledge().filter { $0.syncID == head.syncId }.map(\.lastTimeStamp).max()
        return head.head > known ?? 0
    }
}

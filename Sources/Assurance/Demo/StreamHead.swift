import Foundation
import Synchronization
import WeirClient

/// The newest timeStamp of the account's stream, as the server's events say it.
final class StreamHead: Sendable {
    private struct Event: Decodable { let head: Int64 }

    private let head = Mutex<Int64>(0)

    var value: Int64 { head.withLock { $0 } }

    /// Reads events until the task is cancelled; the demonstration continues without them.
    func follow(_ server: Server) async {
        while !Task.isCancelled {
            do {
                let stream = try await server.open("v1/watch", timeout: 60, as: try await server.caller())
                var parser = EventParser()
                for try await piece in stream.pieces {
                    for message in try parser.read(piece) where message.name == "head" {
                        let event = try JSONDecoder().decode(Event.self, from: Data(message.data.utf8))
                        head.withLock { $0 = max($0, event.head) }
                    }
                }
                try await Task.sleep(for: .seconds(1))
            } catch is CancellationError {
                return
            } catch {
                // The devices report what is wrong with the server.
                do { try await Task.sleep(for: .seconds(1)) } catch { return }
            }
        }
    }
}

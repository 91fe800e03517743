import EmbeddedPipeline
import Foundation
import HTTP
import SchemaFile
import SyncModel
import Synchronization
import WeirClient

/// The server of a ``SyncKit``: the whole pipeline in this process, on files in a temporary folder.
///
/// It is what `weir run` runs, without its HTTP server: requests of devices are calls. Callers state who they are.
public final class TestServer: Sendable {
    private struct State {
        var pipeline: RunningPipeline?
        var tables: [Table]
    }

    /// The URL to attach a `Weir` with that a test opens itself; no address is looked up.
    public static let url = URL(string: "http://localhost/")!

    private let folder: String
    private let state: Mutex<State>

    init(folder: String, tables: [Table]) {
        self.folder = folder
        state = Mutex(State(tables: tables))
    }

    /// Sends requests to the server, without any fault.
    ///
    /// For a `Weir` that the app's own code opens: `SyncOptions.transport`, with ``url``. The token of an account is its name.
    public var transport: any Transport { DirectTransport(server: self) }

    /// Whether requests are answered.
    public var isRunning: Bool { state.withLock { $0.pipeline != nil } }

    /// Starts the server on what it had before.
    ///
    /// - Throws: what the pipeline says where it cannot start.
    public func start() async throws {
        if isRunning { return }
        let tables = tables
        let pipeline = try await RunningPipeline.start(in: folder, declaring: tables, port: nil)
        state.withLock { $0.pipeline = pipeline }
    }

    /// Stops the server in order.
    ///
    /// What it has acknowledged is in its files. Until ``start()`` no request is answered.
    public func stop() async throws {
        let pipeline = state.withLock { state in
            defer { state.pipeline = nil }
            return state.pipeline
        }
        try await pipeline?.stop()
    }

    /// Stops the server and starts it with another version of its schema.
    ///
    /// - Parameter schema: the text of a schema file, which adds to the one before.
    /// - Throws: what is wrong with the schema, or with the step to it; then the server runs with the schema before.
    public func upgrade(schema: String) async throws {
        let (before, after) = (tables, try SchemaFile.tables(from: Array(schema.utf8)))
        try await stop()
        state.withLock { $0.tables = after }
        do {
            try await start()
        } catch {
            state.withLock { $0.tables = before }
            try await start()
            throw error
        }
    }

    var tables: [Table] { state.withLock { $0.tables } }

    /// Answers requests.
    var handler: any HTTPHandler {
        get throws {
            guard case .handler(let handler) = state.withLock({ $0.pipeline })?.access else { throw ConnectionLost() }
            return handler
        }
    }
}

import Foundation
import Synchronization
import TestResources
import WeirClient

/// Kills a device at one of its statements: the file is copied there, as the next process finds it, and nothing is sent any more.
final class Kill: Sendable {
    private struct State {
        var left: Int
        var error: (any Error)?
    }

    private let folder: TemporaryFolder
    private let path: String
    private let state: Mutex<State>
    /// The device's network until it is killed.
    private let transport: any Transport

    /// - Parameters:
    ///   - path: the file, whose connections are opened after this.
    ///   - statement: which one it is, from 1.
    init(path: String, at statement: Int, _ transport: any Transport) throws {
        folder = try TemporaryFolder()
        self.path = path
        self.transport = transport
        state = Mutex(State(left: statement))
        StatementTrace.begin(path) { [self] in willRun() }
    }

    /// Ends it, if it has not happened.
    func stop() { StatementTrace.end(path) }

    var hasHappened: Bool { state.withLock { $0.left <= 0 } }

    /// Moves the copy to another path.
    func write(to path: String) throws {
        if let error = state.withLock({ $0.error }) { throw error }
        for suffix in ["", "-wal"] where folder.exists("test.sqlite" + suffix) {
            try FileManager.default.moveItem(atPath: folder.file() + suffix, toPath: path + suffix)
        }
    }

    private func willRun() {
        let isNow = state.withLock { state in
            state.left -= 1
            return state.left == 0
        }
        guard isNow else { return }
        StatementTrace.end(path)
        do {
            for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: path + suffix) {
                try FileManager.default.copyItem(atPath: path + suffix, toPath: folder.file() + suffix)
            }
        } catch {
            state.withLock { $0.error = error }
        }
    }
}

extension Kill: Transport {
    func send(_ request: TransportRequest) async throws -> TransportResponse {
        if hasHappened { throw ScriptedTransport.Lost() }
        return try await transport.send(request)
    }

    func open(_ request: TransportRequest) async throws -> TransportStream {
        if hasHappened { throw ScriptedTransport.Lost() }
        return try await transport.open(request)
    }
}

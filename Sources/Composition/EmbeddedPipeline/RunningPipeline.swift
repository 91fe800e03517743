import AsyncPrimitives
import Configuration
import Gateway
import HTTP
import Observability
import Operations
import ServiceLifecycle
import SyncModel

/// The whole pipeline on the files of a folder, as a part of this process: for tests of apps and demonstrations.
///
/// Callers state who they are (`auth: none`), as fast as they like.
package final class RunningPipeline: Sendable {
    /// Why the pipeline does not serve.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// How requests reach it.
    package enum Access: Sendable {
        /// By HTTP at this address.
        case address(HTTPPeer)
        /// By calls of this process.
        case handler(any HTTPHandler)
    }

    package let access: Access
    private let backend: EmbeddedBackend
    private let group: ServiceGroup
    private let running: Task<Void, any Error>

    private init(access: Access, backend: EmbeddedBackend, group: ServiceGroup, running: Task<Void, any Error>) {
        self.access = access
        self.backend = backend
        self.group = group
        self.running = running
    }

    /// Opens or continues the folder, and returns when requests can be served.
    ///
    /// - Parameters:
    ///   - folder: is created when missing; one process at a time may use it.
    ///   - tables: the tables of the newest schema version.
    ///   - port: of loopback, where requests are accepted; 0 for a free one; `nil`: this process calls the handler.
    /// - Throws: what `weir run` ends with.
    package static func start(
        in folder: String, declaring tables: [Table], port: UInt16?, logger: Logger = .disabled
    ) async throws -> RunningPipeline {
        var pipeline = PipelineConfiguration()
        // An owner belongs to one partition, and these have few owners.
        pipeline.partitions = 1
        var stages = StageSettings(folder: folder)
        stages.gateway.callerRates = Rates()
        stages.gateway.deviceRates = Rates()
        if let port, let address = NetworkAddress(host: "127.0.0.1", port: port) { stages.gateway.address = address }
        let monitoring = Monitoring(conditions: [.storage, .streams, .gateway])
        let backend = try await EmbeddedBackend.open(
            EmbeddedSettings(folder: folder), pipeline, stages, declaring: tables, logger: logger,
            monitoring: monitoring)
        let opened = Promise<Result<Access, any Error>>()
        let entrance: Entrance =
            port == nil
            ? .calls { opened.fulfil(.success(.handler($0))) } : .http { opened.fulfil(.success(.address($0))) }
        let group: ServiceGroup
        do {
            group = ServiceGroup(
                try RoleServices(backend, monitoring, logger).all(stages, data: folder, entrance: entrance),
                logger: logger)
        } catch {
            try await backend.close()
            throw error
        }
        let running = Task {
            let result = await Result.capturing { try await group.run() }
            opened.fulfil(.failure(Failure(description: "the pipeline has ended")))
            try result.get()
        }
        do {
            return RunningPipeline(
                access: try await opened.value().get(), backend: backend, group: group, running: running)
        } catch {
            let result = await running.result
            try await backend.close()
            try result.get()
            throw error
        }
    }

    /// Stops in order; everything that was acknowledged is in the folder.
    package func stop() async throws {
        group.shutDown(reason: "it is stopped")
        let result = await running.result
        try await backend.close()
        try result.get()
    }
}

import EmbeddedPipeline
import ProgramRun
import SchemaFile

/// A server in the tests' own process, to which programs connect.
enum EmbeddedServer {
    /// Runs a body while a server runs.
    ///
    /// - Parameter schema: as a schema file has it.
    static func run(
        in folder: TestFolder, _ schema: String, _ body: (_ url: String) async throws -> Void
    ) async throws {
        let tables = try SchemaFile.tables(from: Array(schema.utf8))
        let pipeline = try await RunningPipeline.start(in: folder.path + "/server", declaring: tables, port: 0)
        guard case .address(let address) = pipeline.access else { preconditionFailure("it was started with a port") }
        do {
            try await body("http://\(address)")
        } catch {
            try await pipeline.stop()
            throw error
        }
        try await pipeline.stop()
    }
}

import Commands
import Gateway
import HTTP
import Observability
import ServiceLifecycle

/// `weir run` on files: the whole pipeline until SIGTERM or SIGINT.
enum Run {
    static func run(_ settings: EmbeddedSettings, _ logging: LogConfiguration) async -> ExitCode {
        await ServiceRunner.run(logging, settings.operations) { logger, monitoring, stop in
            let pipeline = try await EmbeddedPipeline.open(settings, logger: logger, monitoring: monitoring)
            try await pipeline.run { group in
                stop.handle { group.shutDown(reason: $0) }
            } started: { address in
                logger.noteReady(at: address, settings.stages.gateway.server, data: settings.pipeline.data)
            }
        }
    }
}

extension Logger {
    /// Says where requests are accepted.
    func noteReady(at address: HTTPPeer, _ server: HTTPServerConfiguration, data: String?) {
        let url = "\(server.tls == nil ? "http" : "https")://\(address)/v1/sync"
        var metadata: LogMetadata = [.address: .string("\(address)")]
        if let data { metadata[.path] = .string(data) }
        notice("Weir is ready: send the first request to \(url)", metadata)
    }
}

import Observability
import ServiceLifecycle

/// Runs two services until a signal comes, and says on standard error what happens.
///
/// With the argument `stubborn`, the second service does not stop when it is asked to.
@main
struct SignalProbe {
    struct Talker: Service {
        let name: String
        let logger: Logger
        let isStubborn: Bool

        func run() async throws {
            logger.info("\(name) runs")
            try await gracefulShutdown()
            logger.info("\(name) was asked to stop")
            if isStubborn {
                let never = AsyncStream.makeStream(of: Void.self)
                for await _ in never.stream {}
            }
        }
    }

    static func main() async throws {
        let signals = try ProcessSignals(handlesHangup: true)
        let sink = BoundedLogSink(format: .json)
        let logger = Logger(label: "probe", output: LogOutput(format: .json, to: sink), level: .info)
        let isStubborn = CommandLine.arguments.contains("stubborn")
        let group = ServiceGroup(
            [
                ServiceGroup.Member("first", Talker(name: "first", logger: logger, isStubborn: false)),
                ServiceGroup.Member("second", Talker(name: "second", logger: logger, isStubborn: isStubborn)),
            ], logger: logger)
        try signals.listen {
            group.shutDown(reason: $0.name)
        } onHangup: {
            logger.info("hung up")
        }
        try await group.run()
        logger.info("ended")
        sink.flush(within: .seconds(5))
    }
}

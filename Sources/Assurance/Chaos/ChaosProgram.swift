import Commands
import Glibc
import KafkaServer
import LoadTools
import PostgresServer
import ServiceLifecycle

/// The program `weir-chaos`.
@main
enum ChaosProgram {
    private static let options = [
        CommandOption("changes", .required("N"), "Stop after so many acknowledged changes; 100000 by default."),
        CommandOption("seconds", .required("N"), "Stop after so many seconds instead."),
        CommandOption("seed", .required("S"), "Decides faults and writes; by default a random one."),
        CommandOption("faults", .required("N"), "Faults a minute on average, 0 for none; 20 by default."),
        CommandOption(
            "in-turn", .none,
            "In place of random faults, each process is killed and restarted 20 s later, then each once more and at once; then the run ends."
        ),
        CommandOption("owners", .required("N"), "Owners; 8 by default."),
        CommandOption("devices", .required("N"), "Devices of each owner; 4 by default."),
        CommandOption("batch", .required("N"), "The most changes of a batch; 100 by default."),
        CommandOption("rows", .required("N"), "Ids of each table and owner, few for many conflicts; 200 by default."),
        CommandOption("partitions", .required("N"), "Partitions of the topics; 8 by default."),
        CommandOption(
            "healing", .required("SECONDS"),
            "How long everything may take to be ready and drained after the last fault; 300 by default."),
        CommandOption(
            "kafka", .required("HOST:PORT,..."),
            "Brokers that run already, without faults of their own; else KAFKA_BOOTSTRAP_SERVERS, or one from KAFKA_HOME."
        ),
        CommandOption(
            "postgres", .required("CONNECTION"),
            "An empty database that runs already, without faults of its own; else a server of the installed programs."),
        CommandOption("folder", .required("DIR"), "Where the scratch folder goes; TMPDIR or /tmp."),
        CommandOption("keep", .none, "Keep the scratch folder also when nothing is wrong."),
        CommandOption("weir", .required("PATH"), "The program that is run; by default weir beside this program."),
    ]

    static func main() async {
        let command = Command(
            "weir-chaos", "Run a cluster on this machine under random faults, and judge what its devices got.", (),
            options: options,
            discussion: "Exits with 1 if a batch is lost, doubled or wrong; docs/operations.md explains the report.")
        exit(await command.run(play).rawValue)
    }

    private static func play(_ invocation: CommandInvocation<Void>) async throws(UsageError) -> ExitCode {
        let options = try read(invocation)
        let parent = invocation.option("folder")?.value ?? Environment.variables["TMPDIR"] ?? "/tmp"
        do {
            try FileLimit.raise()
            let folder = try WorkFolder(in: parent, prefix: "weir-chaos")
            let interruption = ChaosInterruption()
            try ProcessSignals().listen { _ in interruption.request() }
            Output.complain("seed \(options.seed); events and logs of all processes: \(folder.path)")
            do {
                let run = try ChaosRun(options, in: folder, interruption) { Output.complain($0) }
                let report = try await run.play()
                Output.write(report.text())
                for batch in Set(report.findings.compactMap(\.batch)).prefix(3) {
                    Output.write("events of \(batch):")
                    let trace = try run.state.events.trace(of: batch.description, with: " FAULT ")
                    for line in trace.suffix(100) { Output.write("  " + line) }
                }
                if report.isSound {
                    if invocation.option("keep") == nil { try folder.remove() }
                    return .success
                }
            } catch {
                Output.complain("\(error)")
            }
            Output.complain("the scratch folder is kept: \(folder.path)")
        } catch {
            Output.complain("\(error)")
        }
        return .failure
    }

    private static func read(_ invocation: CommandInvocation<Void>) throws(UsageError) -> ChaosRun.Options {
        let program: String
        do throws(LoadFailure) {
            if let path = invocation.option("weir")?.value {
                program = path
            } else {
                program = try ChildProcess.weirBesideThisProgram()
            }
        } catch {
            throw UsageError(error.description)
        }
        var cluster = ChaosCluster.Options(program: program)
        cluster.brokers = invocation.option("kafka")?.value ?? KafkaServer.named
        cluster.database = invocation.option("postgres")?.value
        if cluster.brokers == nil, KafkaServer.home == nil {
            throw UsageError("neither --kafka nor KAFKA_BOOTSTRAP_SERVERS nor KAFKA_HOME is given")
        }
        if cluster.database == nil, PostgresServer.programs == nil {
            throw UsageError("\(PostgresServer.skipReason); --postgres names a database that runs")
        }
        if let count = try invocation.number("partitions", in: 1...1024) { cluster.partitions = count }
        var options = ChaosRun.Options(
            seed: UInt64(try invocation.number("seed", in: 0...Int.max / 2_000_006) ?? Int.random(in: 1...999_999)),
            cluster: cluster)
        if let count = try invocation.number("changes", in: 1...1_000_000_000) { options.goal = .changes(count) }
        if let count = try invocation.number("seconds", in: 1...1_000_000) { options.goal = .seconds(count) }
        if let count = try invocation.number("faults", in: 0...6000) { options.faultsPerMinute = count }
        if invocation.option("in-turn") != nil {
            if let other = ["changes", "seconds", "faults"].first(where: { invocation.option($0) != nil }) {
                throw UsageError("--in-turn decides when the run ends, and its faults: leave --\(other) out")
            }
            options.goal = .killsInTurn
        }
        if let count = try invocation.number("owners", in: 1...10_000) { options.owners = count }
        if let count = try invocation.number("devices", in: 1...1000) { options.devices = count }
        if let count = try invocation.number("batch", in: 1...10_000) { options.batch = max(1, count / 10)...count }
        if let count = try invocation.number("rows", in: 1...1_000_000) { options.rows = count }
        if let count = try invocation.number("healing", in: 1...100_000) { options.healing = count }
        return options
    }
}

import Commands
import Glibc
import ServiceLifecycle

/// The program `weir-bench`.
@main
enum BenchProgram {
    private static let options = [
        CommandOption(
            "only", .required("NAME,..."),
            "Only these figures: \(Benchmark.figureNames.joined(separator: ", ")); in a cluster: "
                + "\(Benchmark.clusterFigureNames.joined(separator: ", "))."),
        CommandOption(
            "kafka", .required("HOST:PORT,..."),
            "Measures on these brokers, with topics of its own that are removed; goes with --postgres."),
        CommandOption(
            "postgres", .required("CONNECTION"),
            "Database to measure on, a connection string of libpq without a password, with a schema of its own that is removed."
        ),
        CommandOption("replication", .required("N"), "Copies of each partition on the brokers; 1 by default."),
        CommandOption(
            "together", .none, "Measures all roles in one process on the brokers, instead of a process for each."),
        CommandOption(
            "scale", .required(Scale.allCases.map(\.rawValue).joined(separator: "|")),
            "How much is measured; small takes a few minutes and is the default, full an hour and 20 GB."),
        CommandOption("soak", .required("MINUTES"), "How long the soak takes."),
        CommandOption(
            "folder", .required("DIR"), "Where temporary data goes, on the disk to be measured; TMPDIR or /tmp."),
        CommandOption("weir", .required("PATH"), "The program that is measured; by default weir beside this program."),
        CommandOption("json", .required("FILE"), "Writes the figures as JSON, too; - for standard output alone."),
    ]

    static func main() async {
        let command = Command(
            "weir-bench", "Measure this machine and Weir on it.", (), options: options,
            discussion: "Starts servers of its own; docs/operations.md explains the figures.")
        exit(await command.run(measure).rawValue)
    }

    private static func measure(_ invocation: CommandInvocation<Void>) async -> ExitCode {
        let options: Benchmark.Options
        do {
            options = try read(invocation)
        } catch {
            Output.complain("Error: \(error.description)")
            return .usage
        }
        if !Benchmark.isReleaseBuild {
            Output.complain("This is a debug build: its figures say nothing. Build with swift build -c release.")
        }
        do {
            let interruption = Interruption()
            try ProcessSignals().listen { _ in interruption.request() }
            let outcome = try await Benchmark.run(options, version: Version.text, interruption: interruption)
            let file = invocation.option("json")?.value
            if file == "-" {
                Output.write(String(decoding: outcome.json, as: UTF8.self))
            } else {
                Output.write(outcome.table)
                if let file { try write(outcome.json, to: file) }
            }
            if outcome.isSound { return .success }
            Output.complain("A count came out wrong: see the table.")
        } catch {
            Output.complain("\(error)")
        }
        return .failure
    }

    /// Why a call or its result cannot be used.
    private struct Refusal: Error, CustomStringConvertible {
        let description: String
    }

    private static func read(_ invocation: CommandInvocation<Void>) throws(Refusal) -> Benchmark.Options {
        var options = Benchmark.Options(
            folder: Environment.variables["TMPDIR"] ?? "/tmp", cluster: try cluster(invocation))
        if let names = invocation.option("only")?.value {
            let all = options.cluster == nil ? Benchmark.figureNames : Benchmark.clusterFigureNames
            options.figures = names.split(separator: ",").map(String.init)
            for name in options.figures where !all.contains(name) {
                let known = all.joined(separator: ", ")
                throw Refusal(description: "there is no figure \"\(name)\"; there are \(known)")
            }
        }
        if let text = invocation.option("scale")?.value {
            guard let scale = Scale(rawValue: text) else {
                let known = Scale.allCases.map(\.rawValue).joined(separator: ", ")
                throw Refusal(description: "there is no scale \"\(text)\"; there are \(known)")
            }
            options.scale = scale
        }
        if let text = invocation.option("soak")?.value {
            guard let minutes = Int(text), (1...10_000).contains(minutes) else {
                throw Refusal(description: "--soak takes minutes, from 1 to 10000, not \"\(text)\"")
            }
            options.soakMinutes = minutes
        }
        options.weir = invocation.option("weir")?.value
        if let folder = invocation.option("folder")?.value { options.folder = folder }
        return options
    }

    private static func cluster(_ invocation: CommandInvocation<Void>) throws(Refusal) -> Cluster? {
        let (brokers, database) = (invocation.option("kafka")?.value, invocation.option("postgres")?.value)
        let copies = invocation.option("replication")?.value
        let isTogether = invocation.option("together") != nil
        guard let brokers, let database else {
            if brokers == nil, database == nil, copies == nil, !isTogether { return nil }
            throw Refusal(description: "a cluster takes both --kafka and --postgres")
        }
        guard let replication = Int(copies ?? "1"), (1...100).contains(replication) else {
            throw Refusal(description: "--replication takes a number from 1 to 100, not \"\(copies ?? "")\"")
        }
        do {
            return try Cluster(brokers: brokers, database: database, replication: replication, isTogether: isTogether)
        } catch {
            throw Refusal(description: error.description)
        }
    }

    private static func write(_ bytes: [UInt8], to path: String) throws(Refusal) {
        guard let file = fopen(path, "w") else {
            throw Refusal(description: "\(path) cannot be written: \(String(cString: strerror(errno)))")
        }
        let written = fwrite(bytes, 1, bytes.count, file)
        guard fclose(file) == 0, written == bytes.count else {
            throw Refusal(description: "\(path) could not be written whole: \(String(cString: strerror(errno)))")
        }
    }
}

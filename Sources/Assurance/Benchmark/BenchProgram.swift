import Commands
import Glibc
import LoadTools
import ServiceLifecycle

/// The program `weir-bench`.
@main
enum BenchProgram {
    private static let options = [
        CommandOption(
            "only", .required("NAME,..."),
            "Only these figures: \(names(isCluster: false)); in a cluster: \(names(isCluster: true))."),
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
        CommandOption("abuse", .required("SECONDS"), "How long the abuse takes, after as long without it."),
        CommandOption(
            "abuses", .required("NAME,..."),
            "Only these kinds of abuse: \(AbuseKind.allCases.map(\.rawValue).joined(separator: ", "))."),
        CommandOption("abuse-rates", .none, "Abuses a server with the default limits of rates."),
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

    private static func names(isCluster: Bool) -> String {
        Benchmark.figures(isCluster: isCluster).map(\.name).joined(separator: ", ")
    }

    private static func measure(_ invocation: CommandInvocation<Void>) async throws(UsageError) -> ExitCode {
        let options = try read(invocation)
        if !Benchmark.isReleaseBuild {
            Output.complain("This is a debug build: its figures mean nothing. Build with swift build -c release.")
        }
        do {
            let interruption = Interruption()
            try ProcessSignals().listen { _ in interruption.request() }
            let report = try await Benchmark.run(options, interruption: interruption)
            let file = invocation.option("json")?.value
            if file == "-" {
                Output.write(String(decoding: report.json(), as: UTF8.self))
            } else {
                Output.write(report.table())
                if let file { try write(report.json(), to: file) }
            }
            if report.isSound { return .success }
            Output.complain("A count is wrong: see WRONG in the table.")
        } catch {
            Output.complain("\(error)")
        }
        return .failure
    }

    private static func read(_ invocation: CommandInvocation<Void>) throws(UsageError) -> Benchmark.Options {
        var options = Benchmark.Options(
            folder: invocation.option("folder")?.value ?? Environment.variables["TMPDIR"] ?? "/tmp",
            cluster: try cluster(invocation), weir: invocation.option("weir")?.value)
        if let names = invocation.option("only")?.value?.split(separator: ",").map(String.init) {
            let known = Benchmark.figures(isCluster: options.cluster != nil).map(\.name)
            if let unknown = names.first(where: { !known.contains($0) }) {
                throw UsageError(
                    "there is no figure \"\(unknown)\"; there are \(known.joined(separator: ", "))")
            }
            options.figures = names
        }
        if let text = invocation.option("scale")?.value {
            guard let scale = Scale(rawValue: text) else {
                let known = Scale.allCases.map(\.rawValue).joined(separator: ", ")
                throw UsageError("there is no scale \"\(text)\"; there are \(known)")
            }
            options.scale = scale
        }
        if let minutes = try time("soak", in: "minutes", from: 1...10_000, invocation) { options.soakMinutes = minutes }
        if let seconds = try time("abuse", in: "seconds", from: 1...100_000, invocation) {
            options.abuseSeconds = seconds
        }
        if let names = invocation.option("abuses")?.value?.split(separator: ",").map(String.init) {
            options.abuses = []
            for name in names {
                guard let kind = AbuseKind(rawValue: name) else {
                    let known = AbuseKind.allCases.map(\.rawValue).joined(separator: ", ")
                    throw UsageError("there is no abuse \"\(name)\"; there are \(known)")
                }
                options.abuses.append(kind)
            }
        }
        options.abuseHasRates = invocation.option("abuse-rates") != nil
        return options
    }

    private static func time(
        _ name: String, in unit: String, from range: ClosedRange<Int>, _ invocation: CommandInvocation<Void>
    ) throws(UsageError) -> Int? {
        guard let text = invocation.option(name)?.value else { return nil }
        guard let value = Int(text), range.contains(value) else {
            throw UsageError(
                "--\(name) takes \(unit), from \(range.lowerBound) to \(range.upperBound), not \"\(text)\"")
        }
        return value
    }

    private static func cluster(_ invocation: CommandInvocation<Void>) throws(UsageError) -> Cluster? {
        let (brokers, database) = (invocation.option("kafka")?.value, invocation.option("postgres")?.value)
        let copies = invocation.option("replication")?.value
        let isTogether = invocation.option("together") != nil
        guard let brokers, let database else {
            if brokers == nil, database == nil, copies == nil, !isTogether { return nil }
            throw UsageError("a cluster takes both --kafka and --postgres")
        }
        guard let replication = Int(copies ?? "1"), (1...100).contains(replication) else {
            throw UsageError("--replication takes a number from 1 to 100, not \"\(copies ?? "")\"")
        }
        do {
            return try Cluster(brokers: brokers, database: database, replication: replication, isTogether: isTogether)
        } catch {
            throw UsageError(error.description)
        }
    }

    private static func write(_ bytes: [UInt8], to path: String) throws(LoadFailure) {
        guard let file = fopen(path, "w") else {
            throw .system("opening \(path)", errno)
        }
        let written = fwrite(bytes, 1, bytes.count, file)
        guard fclose(file) == 0, written == bytes.count else {
            throw .system("writing \(path)", errno)
        }
    }
}

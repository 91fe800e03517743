import Commands
import LoadTools

/// Measures what Weir promises, against what the same disk and SQLite, or the same brokers and Postgres, do alone.
enum Benchmark {
    struct Options: Sendable {
        /// The names of the figures; `nil` for all.
        var figures: [String]?
        /// Where the temporary folder is made: on the disk that is to be measured.
        var folder: String
        var scale = Scale.small
        /// How long the soak takes in minutes; `nil` for what the scale says.
        var soakMinutes: Int?
        /// How long the abuse takes in seconds; `nil` for what the scale says.
        var abuseSeconds: Int?
        /// What the abuse consists of.
        var abuses = AbuseKind.allCases
        /// Whether rates are limited during the abuse.
        var abuseHasRates = false
        /// Brokers and a database for log and tables; `nil` for the embedded ones.
        var cluster: Cluster?
        /// The program that is measured; `nil` for `weir` beside this one.
        var weir: String?
    }

    static func figures(isCluster: Bool) -> [any Figure] {
        let throughput: [any Figure] = [
            EndToEnd(ids: .random), EndToEnd(ids: .random, hasCallerLag: true),
            EndToEnd(ids: .random, hasChangeIDs: true), EndToEnd(ids: .growing),
        ]
        let latency: [any Figure] = [UploadAcknowledged(), UploadToPoll()]
        if isCluster { return throughput + [Replay()] + latency + [OwnerCount(), StreamRebuild(), Soak()] }
        return throughput + latency
            + [
                LongStream(), IdlePulls(), TokenChecks(), TokenRequests(), KnownDevices(), EventStreams(), FaceWork(),
                OwnerCount(), StreamRebuild(), ClientCapture(), ClientApply(), ClientFirstSync(), ClientWrites(),
                ClientIdle(), Soak(), Abuse(),
            ]
    }

    /// Measures the figures; the temporary folder is removed at the end.
    ///
    /// - Parameters:
    ///   - output: where the progress is shown.
    ///   - interruption: ends it early.
    static func run(
        _ options: Options, output: ProgressBar.Output = .standardError, interruption: Interruption = Interruption()
    ) async throws -> Report {
        try FileLimit.raise()
        let folder = try WorkFolder(in: options.folder, prefix: "weir-bench")
        let report: Report
        do {
            let soak = options.soakMinutes.map { $0 * 60 } ?? options.scale.pick(1, 60, 600)
            let weir = try options.weir ?? ChildProcess.weirBesideThisProgram()
            report = try await measure(
                options.figures,
                Bench(
                    folder: folder, scale: options.scale, cluster: options.cluster, soakSeconds: soak,
                    abuseSeconds: options.abuseSeconds ?? options.scale.pick(1, 20, 120), abuses: options.abuses,
                    abuseHasRates: options.abuseHasRates, output: output,
                    weir: WeirProgram(path: weir, interruption: interruption)))
        } catch {
            let failure = interruption.isRequested ? Interruption.failure : error
            do {
                try folder.remove()
            } catch let second {
                throw LoadFailure("\(failure); then \(folder.path) could not be removed: \(second)")
            }
            throw failure
        }
        try folder.remove()
        return report
    }

    static var isReleaseBuild: Bool {
        #if DEBUG
            false
        #else
            true
        #endif
    }

    private static func measure(_ names: [String]?, _ bench: Bench) async throws -> Report {
        let load = try SystemCall.contents(of: "/proc/loadavg").split(separator: " ").prefix(3)
        var report = Report(
            version: Version.text, scale: bench.scale, isRelease: isReleaseBuild, processors: Meter.processors,
            load: load.joined(separator: " "))
        for figure in figures(isCluster: bench.cluster != nil) where names?.contains(figure.name) ?? true {
            let start = SystemCall.nanoseconds()
            var result = try await figure.measure(bench)
            result.seconds = SystemCall.seconds(since: start)
            report.entries.append(.init(name: figure.name, title: figure.title, result: result))
        }
        return report
    }
}

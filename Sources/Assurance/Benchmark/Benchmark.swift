import Commands

/// `weir-bench`: measures what Weir promises, against what the same disk and the same SQLite do without it, or the same
/// brokers and the same Postgres.
///
/// Each figure starts a `weir run` of its own in a temporary folder, and loads it from this process
/// over HTTP, so that both share the machine.
package struct Benchmark: Sendable {
    /// What to measure.
    package struct Options: Sendable {
        /// The names of the figures, in their order.
        package var figures: [String]
        /// Where the temporary folder is made; on the disk that is to be measured.
        package var folder: String
        /// How much is measured.
        package var scale: Scale
        /// How long the soak takes in minutes; `nil` for what the scale says.
        package var soakMinutes: Int?
        /// Brokers and a database for log and tables; `nil` for the embedded ones.
        package var cluster: Cluster?

        /// The program that is measured; `nil` for `weir` beside this one.
        package var weir: String?

        /// All figures in the folder for temporary files, as `small` as usual.
        package init(
            figures: [String]? = nil, folder: String = "/tmp", scale: Scale = .small, soakMinutes: Int? = nil,
            cluster: Cluster? = nil
        ) {
            self.figures = figures ?? (cluster == nil ? Benchmark.figureNames : Benchmark.clusterFigureNames)
            self.cluster = cluster
            self.folder = folder
            self.scale = scale
            self.soakMinutes = soakMinutes
        }
    }

    /// A report as it is shown.
    package struct Outcome: Sendable {
        /// For people.
        package let table: String
        /// For programs.
        package let json: [UInt8]
        /// Whether everything that was counted came out right; times are not judged.
        package let isSound: Bool
    }

    private static let figures: [any Figure] = [
        EndToEnd(ids: .random), EndToEnd(ids: .growing), UploadAcknowledged(), UploadToPoll(), LongStream(),
        IdlePulls(), EventStreams(), OwnerCount(), StreamRebuild(), Soak(),
    ]

    private static let clusterFigures: [any Figure] = [
        EndToEnd(ids: .random), EndToEnd(ids: .growing), Replay(), UploadAcknowledged(), UploadToPoll(), OwnerCount(),
        StreamRebuild(), Soak(),
    ]

    /// The names of all figures in the order in which they are measured.
    package static var figureNames: [String] { figures.map(\.name) }

    /// The names of those of a cluster.
    package static var clusterFigureNames: [String] { clusterFigures.map(\.name) }

    /// Measures.
    ///
    /// - Parameters:
    ///   - version: the program's, for the report.
    ///   - output: where the progress is shown.
    ///   - interruption: ends it early.
    /// - Throws: `BenchmarkFailure` where something cannot be measured; the temporary folder is removed.
    package static func run(
        _ options: Options, version: String, output: ProgressBar.Output = .standardError,
        interruption: Interruption = Interruption()
    ) async throws -> Outcome {
        try FileLimit.raise()
        let folder = try WorkFolder(in: options.folder)
        let report: Report
        do {
            report = try await measure(options, version: version, in: folder, output, interruption)
        } catch {
            let failure = interruption.isRequested ? Interruption.failure : error
            do {
                try folder.remove()
            } catch let second {
                throw BenchmarkFailure("\(failure); then \(folder.path) could not be removed: \(second)")
            }
            throw failure
        }
        try folder.remove()
        return Outcome(table: report.table(), json: report.json(), isSound: report.isSound)
    }

    /// Whether the program was built for speed.
    package static var isReleaseBuild: Bool {
        #if DEBUG
            false
        #else
            true
        #endif
    }

    private static func measure(
        _ options: Options, version: String, in folder: WorkFolder, _ output: ProgressBar.Output,
        _ interruption: Interruption
    ) async throws -> Report {
        let bench = Bench(
            folder: folder, scale: options.scale, cluster: options.cluster,
            soakSeconds: options.soakMinutes.map { $0 * 60 } ?? options.scale.pick(1, 60, 600), output: output,
            weir: WeirProgram(path: try options.weir ?? WeirProgram.besideThisProgram(), interruption: interruption))
        let load = try SystemCall.contents(of: "/proc/loadavg").split(separator: " ").prefix(3)
        var report = Report(
            version: version, scale: options.scale, isRelease: isReleaseBuild, processors: MachineAccount.processors,
            load: load.joined(separator: " "))
        for figure in options.cluster == nil ? figures : clusterFigures where options.figures.contains(figure.name) {
            let start = SystemCall.nanoseconds()
            var result = try await figure.measure(bench)
            result.seconds = Double(SystemCall.nanoseconds() - start) / 1e9
            report.entries.append(.init(name: figure.name, title: figure.title, result: result))
        }
        return report
    }
}

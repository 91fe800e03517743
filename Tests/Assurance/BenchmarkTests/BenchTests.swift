import Foundation
import ProgramRun
import Testing

/// `weir-bench` at scale smoke: exact counts and the stable form of its report, but no speed.
@Suite(.timeLimit(.minutes(5))) struct BenchTests {
    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    private static let endToEnd = [
        "changes_per_second", "raw_upsert_per_second", "ratio_to_raw_upsert", "server_cpu_per_change",
        "load_cpu_per_change",
    ]

    /// The measures of each figure.
    private static let measures: [String: [String]] = [
        "end-to-end": endToEnd,
        "end-to-end-caller-lag": endToEnd,
        "end-to-end-change-ids": endToEnd,
        "end-to-end-growing": endToEnd,
        "upload": ["upload_p50", "upload_p99", "fsync_p50", "fsync_p99", "upload_p50_in_fsyncs"],
        "latency": ["poll_p50", "poll_p99", "upload_p50", "upload_p99"],
        "stream": [
            "rows_per_second", "megabytes_per_second", "raw_scan_per_second", "ratio_to_raw_scan", "server_cpu_per_row",
        ],
        "idle": [
            "pulls_per_second", "server_cpu_per_pull", "load_cpu_per_pull", "disk_bytes_read",
            "file_bytes_read_per_pull",
        ],
        "devices": [
            "idle_pull_before", "idle_pull_after", "idle_pull_ratio", "first_pull", "first_pull_cpu", "memory",
        ],
        "token-requests": ["change", "idle_pull"].flatMap { label in
            ["none", "cpu_none", "jwt", "cpu_jwt", "ratio", "cpu_ratio"].map { "\(label)_\($0)" }
        },
        "tokens": ["rs256", "es256", "eddsa"].flatMap { ["first_\($0)", "known_\($0)"] },
        "watchers": ["memory_per_stream", "server_cpu_per_waking", "streams"],
        // Trackers and CRUD clients upload one document after the other; the former ask for devices first, the latter cannot ask for what is new.
        "faces": [
            ("upload_1", ["rest", "tracker", "sqlitenow", "crud"]), ("upload_100", ["rest", "sqlitenow"]),
            ("download_1000", ["rest", "tracker", "sqlitenow", "crud"]),
            ("download_all", ["rest", "tracker", "sqlitenow", "crud"]), ("idle", ["rest", "sqlitenow"]),
            ("devices", ["tracker"]),
        ].flatMap { work, faces in
            ["v1", "cpu_v1"].map { "\(work)_\($0)" }
                + faces.flatMap { face in ["", "cpu_", "ratio_", "cpu_ratio_"].map { "\(work)_\($0)\(face)" } }
        },
        "owners": [
            "few_owners", "many_owners", "rows", "batch_few_owners", "batch_many_owners", "batch_ratio",
            "batch_cpu_few_owners", "batch_cpu_many_owners", "batch_cpu_ratio", "single_few_owners",
            "single_many_owners", "single_ratio", "single_cpu_few_owners", "single_cpu_many_owners",
            "single_cpu_ratio",
        ],
        "rebuild": [
            "rows_per_second", "raw_copy_per_second", "ratio_to_raw_copy", "server_cpu_per_row", "server_memory",
        ],
        "capture": ["uuid", "uuid_temp_store_memory", "integer"].flatMap { key in
            ["insert_ratio", "insert_trigger_ratio", "update_ratio", "commit_ratio", "folded_per_second"]
                .map { "\($0)_\(key)" }
        },
        "apply": ["uuid", "integer"].flatMap { key in
            ["new", "again"].flatMap { ["\($0)_rows_per_second_\(key)", "\($0)_ratio_\(key)"] }
        },
        "first-sync": [
            "rows_per_second_growing_ids", "raw_ratio_growing_ids", "rows_per_second_random_ids",
            "raw_ratio_random_ids",
        ],
        "app-writes": ["write", "first_sync"].flatMap { ["\($0)_p50", "\($0)_p99", "\($0)_highest"] } + [
            "alone_p50", "alone_p99", "writes",
        ],
        "client-idle": ["connections", "wake_ups", "wake_ups_alone", "cpu", "cpu_alone", "time"],
        "soak": [
            "memory_highest", "memory_first", "memory_last", "memory_slope", "pairs", "changes_per_second",
        ],
        "abuse": ["other_sync", "other_poll", "same_sync", "same_poll"].flatMap { name in
            ["p50_alone", "p50", "p99_alone", "p99", "max_alone", "max", "p99_ratio"].map { "\(name)_\($0)" }
        } + ["refused", "pending", "memory_before", "memory_highest"]
            + [
                "conflicts", "edits", "refusals", "pages", "unread", "creators", "unfinished", "garbage",
            ].flatMap { ["\($0)_answered", "\($0)_refused"] } + ["server_cpu", "load_cpu"],
    ]

    @Test(arguments: measures.keys.sorted()) func aFigureReportsItsMeasuresAndCounts(name: String) async throws {
        let run = try await CommandRun.run(
            "--scale", "smoke", "--only", name, "--folder", folder.path, "--json", "figures.json", of: .bench,
            in: folder)
        #expect(run.code == 0, "\(run.errors)")
        #expect(run.output.contains("\n\(name): "), "\(run.output)")
        let file = try Data(contentsOf: URL(fileURLWithPath: folder.path + "/figures.json"))
        let report = JSON(try JSONSerialization.jsonObject(with: file))
        #expect(report["scale"].string == "smoke")
        #expect(report["processors"].int ?? 0 > 0)
        #expect(report["figures"].array.map { $0["name"].string } == [name])
        let figure = report["figures"][0]
        #expect(figure["measures"].array.compactMap { $0["name"].string } == Self.measures[name])
        for measure in figure["measures"].array {
            #expect((measure["value"].value as? NSNumber)?.doubleValue.isFinite == true, "\(measure)")
            #expect(measure["isMet"].isNull == (measure["atLeast"].isNull && measure["atMost"].isNull), "\(measure)")
        }
        #expect(!figure["checks"].array.isEmpty)
        for check in figure["checks"].array {
            #expect(check["found"] == check["expected"], "\(check)")
            #expect(check["expected"].int ?? 0 > 0, "\(check)")
        }
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(!left.contains { $0.hasPrefix("weir-bench-") }, "\(left)")
    }

    @Test(arguments: [
        (["--only", "speed"], "there is no figure \"speed\""), (["--scale", "huge"], "there is no scale \"huge\""),
        (["--soak", "0"], "--soak takes minutes"), (["--abuse", "0"], "--abuse takes seconds"),
        (["--abuses", "pages,spam"], "there is no abuse \"spam\""),
    ]) func aWrongCallIsExplained(arguments: [String], explanation: String) async throws {
        let run = try await CommandRun.run(arguments, of: .bench, in: folder)
        #expect(run.code == 64)
        #expect(run.output.isEmpty)
        #expect(run.errors.contains(explanation), "\(run.errors)")
    }

    @Test func aMissingServerProgramIsNamed() async throws {
        let run = try await CommandRun.run(
            "--scale", "smoke", "--only", "idle", "--folder", folder.path, "--weir", "/nowhere/weir", of: .bench,
            in: folder)
        #expect(run.code == 1)
        #expect(run.errors.contains("starting /nowhere/weir failed"), "\(run.errors)")
    }

    @Test func aMissingFolderIsNamed() async throws {
        let run = try await CommandRun.run("--folder", "/nowhere", "--scale", "smoke", of: .bench, in: folder)
        #expect(run.code == 1)
        #expect(run.errors.contains("no folder can be made in /nowhere"), "\(run.errors)")
    }
}

import Foundation
import Testing

/// `/metrics` of a running process.
@Suite(.timeLimit(.minutes(5))) struct MetricsTests {
    private static let document = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent(
            "docs/operations.md")

    /// The value of each series, by name and labels as written.
    private static func series(_ text: String) throws -> [String: Double] {
        let lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }
        return try Dictionary(
            uniqueKeysWithValues: lines.map { line in
                let space = try #require(line.lastIndex(of: " "), "\(line)")
                return (String(line[..<space]), try #require(Double(line[line.index(after: space)...]), "\(line)"))
            })
    }

    private func scrape(_ weir: WeirProcess) async throws -> String {
        let client = DeviceClient(port: try #require(weir.operationsPort), headers: [:])
        let answer = try await client.get("/metrics")
        #expect(answer.status == 200)
        return String(decoding: answer.body, as: UTF8.self)
    }

    /// Uploads and pulls with results of every kind.
    private func load(_ weir: WeirProcess) async throws {
        var one = TestDevice(weir, syncID: "owner-of-data", knowledgeID: "device-of-owner")
        var other = TestDevice(weir, syncID: "owner-of-data", knowledgeID: "other-device")
        let first = try await one.sync([
            TestDevice.change("row-1", ["name": "A"]), TestDevice.change("row-2", ["name": "B"]),
            TestDevice.change("row-3", ["holder": "A", "label": "x"], table: "seat"),
        ])
        #expect(TestDevice.verdicts(first) == ["applied", "applied", "applied"])
        let second = try await other.sync([
            TestDevice.change("row-3", ["holder": "B"], table: "seat"), TestDevice.change("row-4", ["nme": "C"]),
        ])
        #expect(TestDevice.verdicts(second) == ["conflict", "refused unknown_column"])
        try await other.drain()
        _ = try await other.sync()
        let bad = try await one.client.post("/v1/sync", ["knowledgeId": ""])
        #expect(bad.status == 422)
        #expect(try await one.client.get("/v1/nothing").status == 404)
    }

    @Test func whatHappenedIsCounted() async throws {
        let weir = try await TestServer.start()
        #expect(await weir.hasLogged("Weir is ready"))
        try await load(weir)
        let text = try await scrape(weir)
        let series = try Self.series(text)
        let expected: [(String, Double)] = [
            ("weir_ready", 1), ("weir_gateway_uploads_total", 2), ("weir_gateway_changes_total", 5),
            ("weir_gateway_append_duration_seconds_count", 2), ("weir_gateway_append_failures_total", 0),
            ("weir_gateway_problems_total{reason=\"invalid_request\"}", 1),
            ("weir_gateway_problems_total{reason=\"not_found\"}", 1),
            ("weir_gateway_problems_total{reason=\"overloaded\"}", 0),
            ("weir_http_requests_total{route=\"/v1/sync\",status=\"422\"}", 1),
            ("weir_http_requests_total{route=\"other\",status=\"404\"}", 1), ("weir_ingest_records_total", 2),
            ("weir_ingest_changes_total", 5), ("weir_ingest_refused_changes_total{reason=\"unknown_column\"}", 1),
            ("weir_ordering_messages_total{outcome=\"ordered\"}", 2),
            ("weir_ordering_changes_total{outcome=\"applied\"}", 3),
            ("weir_ordering_changes_total{outcome=\"conflict\"}", 1), ("weir_fanout_rows_total", 3),
            ("weir_fanout_serving{partition=\"0\"}", 1), ("weir_fanout_serving{partition=\"1\"}", 1),
            ("weir_fanout_rebuilds_total", 2), ("weir_fanout_page_rows_sum", 3),
            ("weir_stage_retries_total{stage=\"ordering\"}", 0), ("weir_ordering_paused{partition=\"1\"}", 0),
        ]
        for (name, value) in expected { #expect(series[name] == value, "\(name)") }
        #expect(series["weir_upload_to_pullable_seconds_count"] == 2)
        #expect((series["weir_upload_to_pullable_seconds_sum"] ?? 100) < 100)
        #expect(series["weir_process_start_time_seconds"] ?? 0 > 1_700_000_000)
        for name in ["cpu_seconds_total", "resident_memory_bytes", "open_fds", "max_fds"] {
            #expect(series["weir_process_" + name] ?? 0 > 0, "\(name)")
        }
        for name in ["owner-of-data", "device-of-owner", "row-1", "person"] { #expect(!text.contains(name)) }
        #expect(await weir.stop() == 0)
    }

    @Test func everyDocumentedMetricIsShownAndNoOther() async throws {
        let weir = try await TestServer.start()
        try await load(weir)
        let text = try await scrape(weir)
        #expect(await weir.stop() == 0)
        let shown = text.matches(of: /(?m)^# TYPE ([a-z_]+) ([a-z]+)$/).map { "\($0.1) \($0.2)" }
        let page = try String(contentsOf: Self.document, encoding: .utf8)
        let documented = page.matches(of: /\n\| `(weir_[a-z_]+)` \| ([a-z]+) \|/).map { "\($0.1) \($0.2)" }
        #expect(shown.count > 50)
        // The link is between processes.
        #expect(shown == documented.filter { !$0.hasPrefix("weir_link_") })
    }

    @Test func everyLineHasTheFormatOfPrometheus() async throws {
        let weir = try await TestServer.start()
        try await load(weir)
        let text = try await scrape(weir)
        #expect(await weir.stop() == 0)
        #expect(text.hasSuffix("\n"))
        var family: (name: String, kind: Substring)?
        var seen = Set<String>()
        // The buckets of the histogram's series that is being read.
        var buckets: [Double] = []
        for line in text.dropLast().split(separator: "\n", omittingEmptySubsequences: false) {
            if let help = line.wholeMatch(of: /# HELP (weir_[a-z_]+) \S.*/) {
                family = nil
                #expect(seen.insert(String(help.1)).inserted, "the lines of a metric must be adjacent: \(line)")
                continue
            }
            if let type = line.wholeMatch(of: /# TYPE (weir_[a-z_]+) (counter|gauge|histogram)/) {
                #expect(family == nil && seen.contains(String(type.1)), "\(line)")
                family = (String(type.1), type.2)
                continue
            }
            let form =
                /(weir_[a-z_]+)(?:\{([a-z]+="(?:[^"\\\n]|\\[\\n"])*"(?:,[a-z]+="(?:[^"\\\n]|\\[\\n"])*")*)\})? ([-+0-9.e]+)/
            let sample = try #require(line.wholeMatch(of: form), "\(line)")
            let (name, kind) = try #require(family, "\(line)")
            let value = try #require(Double(sample.3), "\(line)")
            #expect(kind == "gauge" || value >= 0, "\(line)")
            let suffix = sample.1.dropFirst(name.count)
            #expect(sample.1.hasPrefix(name) && (kind == "histogram") == !suffix.isEmpty, "\(line)")
            switch suffix {
            case "_bucket":
                #expect(value >= buckets.last ?? 0, "\(line)")
                buckets.append(value)
            case "_count":
                #expect(buckets.last == value, "\(line)")
                buckets = []
            default: break
            }
        }
    }

    @Test(.enabled(if: CommandRun.isInstalled("promtool"), "promtool is not installed"))
    func prometheusAcceptsTheAlertRulesOfTheDocument() async throws {
        let page = try String(contentsOf: Self.document, encoding: .utf8)
        let rules = page.split(separator: "\n", omittingEmptySubsequences: false).drop { $0 != "    groups:" }
            .prefix { $0.hasPrefix("    ") || $0.isEmpty }.map { String($0.dropFirst(4)) }.joined(separator: "\n")
        #expect(rules.contains("alert: "))
        let folder = try TestFolder()
        let file = try folder.write(rules + "\n", to: "rules.yaml")
        let run = try await CommandRun.tool(["promtool", "check", "rules", file], in: folder)
        #expect(run.code == 0, "\(run.output)\(run.errors)")
    }

    @Test(.enabled(if: CommandRun.isInstalled("promtool"), "promtool is not installed"))
    func prometheusAcceptsTheMetrics() async throws {
        let weir = try await TestServer.start()
        try await load(weir)
        let text = try await scrape(weir)
        #expect(await weir.stop() == 0)
        func check(_ text: String) async throws -> CommandRun {
            try weir.folder.write(text, to: "metrics")
            return try await CommandRun.tool(["promtool", "check", "metrics"], input: "metrics", in: weir.folder)
        }
        let right = try await check(text)
        #expect(right.code == 0)
        #expect((right.output + right.errors).isEmpty, "\(right.output)\(right.errors)")
        let broken = try await check(text.replacing("uploads_total", with: "uploads"))
        #expect(broken.code != 0)
    }
}

import Metrics
import Testing

/// What a registry writes.
@Suite struct MetricRegistryTests {
    private let registry = MetricRegistry()

    private func text() async -> String { String(decoding: await registry.text(), as: UTF8.self) }

    @Test func anEmptyRegistryWritesNothing() async {
        #expect(await text().isEmpty)
    }

    @Test func aCounterAndAGaugeHaveHelpTypeAndValue() async {
        registry.counter(.ingestRecords).add(41)
        registry.counter(.ingestRecords).add()
        let gauge = registry.gauge(.logQueueBytes)
        gauge.add(10)
        gauge.add(-17)
        #expect(
            await text() == """
                # HELP weir_log_queue_bytes \(Metric.logQueueBytes.help)
                # TYPE weir_log_queue_bytes gauge
                weir_log_queue_bytes -7
                # HELP weir_ingest_records_total \(Metric.ingestRecords.help)
                # TYPE weir_ingest_records_total counter
                weir_ingest_records_total 42

                """)
    }

    @Test func seriesFollowOneHelpWithTheirLabelsInOrder() async {
        registry.gauge(.stageLagRecords, [.partition: "1", .stage: "ordering"]).set(3)
        registry.gauge(.stageLagRecords, [.stage: "ingest", .partition: "0"]).set(5)
        #expect(
            await text().split(separator: "\n").dropFirst() == [
                "# TYPE weir_stage_lag_records gauge",
                "weir_stage_lag_records{stage=\"ingest\",partition=\"0\"} 5",
                "weir_stage_lag_records{stage=\"ordering\",partition=\"1\"} 3",
            ])
    }

    @Test func anUnknownGaugeIsNotExported() async {
        let gauge = registry.gauge(.stageNextOffset, [.stage: "ingest", .partition: "0"], startingWith: nil)
        #expect(await text().isEmpty)
        gauge.set(0)
        #expect(await text().hasSuffix("\nweir_stage_next_offset{stage=\"ingest\",partition=\"0\"} 0\n"))
        gauge.forget()
        #expect(await text().isEmpty)
    }

    @Test func bucketsAreCumulativeAndInBaseUnits() async {
        let histogram = registry.histogram(.logSyncDuration)
        for duration in [Duration.microseconds(100), .microseconds(101), .milliseconds(3), .seconds(61)] {
            histogram.record(duration)
        }
        let lines = await text().split(separator: "\n").dropFirst(2).map(String.init)
        let bounds = [
            "0.0001\"} 1", "0.00025\"} 2", "0.0005\"} 2", "0.001\"} 2", "0.0025\"} 2", "0.005\"} 3", "0.01\"} 3",
            "0.025\"} 3", "0.05\"} 3", "0.1\"} 3", "0.25\"} 3", "0.5\"} 3", "1\"} 3", "2.5\"} 3", "5\"} 3", "10\"} 3",
            "30\"} 3", "60\"} 3", "+Inf\"} 4",
        ]
        let expected =
            bounds.map { "weir_log_sync_duration_seconds_bucket{le=\"" + $0 }
            + ["weir_log_sync_duration_seconds_sum 61.003201", "weir_log_sync_duration_seconds_count 4"]
        #expect(lines == expected)
    }

    @Test func aHistogramsLabelsComeBeforeItsBound() async {
        registry.histogram(.httpDuration, [.route: "/v1/sync"]).record(1)
        let text = await text()
        #expect(text.contains("weir_http_request_duration_seconds_bucket{route=\"/v1/sync\",le=\"0.0001\"} 1\n"))
        #expect(text.contains("weir_http_request_duration_seconds_sum{route=\"/v1/sync\"} 1e-09\n"))
    }

    @Test func quotesBackslashesAndLineBreaksOfLabelsAreEscaped() async {
        registry.gauge(.buildInfo, [.version: "a\"b\\c\nd\u{e9}"]).set(1)
        #expect(await text().hasSuffix("weir_build_info{version=\"a\\\"b\\\\c\\nd\u{e9}\"} 1\n"))
    }

    @Test func zeroSeriesOfMetricsWithManyLabelsAreOmitted() async {
        let many = registry.counter(.httpRequests, [.route: "/v1/sync", .status: "200"])
        _ = registry.histogram(.httpDuration, [.route: "/v1/sync"])
        _ = registry.counter(.gatewayUploads)
        #expect(await !text().contains("weir_http"))
        #expect(await text().contains("weir_gateway_uploads_total 0\n"))
        many.add()
        #expect(await text().contains("weir_http_requests_total{route=\"/v1/sync\",status=\"200\"} 1\n"))
    }

    @Test func collectorsRunWithEachExport() async {
        let calls = Counter()
        registry.collect { samples in
            calls.add()
            samples.set(.processCPU, Double(calls.value) / 4)
            samples.set(.httpRefusals, [.reason: "overloaded"], calls.value)
        }
        #expect(await text().contains("weir_process_cpu_seconds_total 0.25\n"))
        let second = await text()
        #expect(second.contains("weir_process_cpu_seconds_total 0.5\n"))
        #expect(second.contains("weir_http_refusals_total{reason=\"overloaded\"} 2\n"))
    }

    @Test func nothingIsLostWhenManyThreadsAdd() async {
        let counter = registry.counter(.gatewayChanges)
        let histogram = registry.histogram(.ingestStepRecords)
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for _ in 0..<10_000 {
                        counter.add(2)
                        histogram.record(task)
                    }
                }
            }
        }
        #expect(counter.value == 160_000)
        #expect(histogram.snapshot.cumulative.last == 80_000)
        #expect(histogram.snapshot.sum == 280_000)
    }
}

import ChangeLog
import Metrics

extension MetricRegistry {
    /// Collects each stage's lag from its position and the log, when the metrics are scraped.
    ///
    /// The lag in seconds is the age, by the log's time, of the oldest record that the stage has not finished, which is read
    /// for that.
    ///
    /// - Parameters:
    ///   - now: compared with the log's times, in microseconds since 1970.
    ///   - limit: how long reading the log may delay a scrape; what was not read by then is missing from it.
    ///   - clock: measures the limit.
    package func collectLag(
        of log: some ChangeLog, partitions: Int, now: @escaping @Sendable () -> Int64 = WallClock.microseconds,
        within limit: Duration = .seconds(2), clock: any Clock<Duration> = ContinuousClock()
    ) {
        let sources = MetricStage.allCases.flatMap { stage in
            (0..<partitions).map { LagSource(stage: stage, partition: $0, position: position(of: stage, in: $0)) }
        }
        let readings = LagReadings(of: sources, in: log, now: now, within: limit, clock: clock)
        collect { samples in
            let lags = await readings.lags()
            // Of a partition that was revoked while it was read, the next process has the lag.
            for (index, source) in sources.enumerated() where source.position.value != nil {
                guard let lag = lags[index] else { continue }
                samples.set(.stageLagRecords, source.labels, lag.records)
                if let seconds = lag.seconds { samples.set(.stageLagSeconds, source.labels, seconds) }
            }
        }
    }
}

/// A stage's position in a partition of the topic that it consumes.
struct LagSource: Sendable {
    let stage: MetricStage
    let partition: Int
    /// The offset of the next record; unknown while another process works on the partition.
    let position: Gauge

    var labels: MetricLabels { [.stage: stage.rawValue, .partition: "\(partition)"] }

    var topic: TopicPartition {
        switch stage {
        case .ingest: TopicPartition(.uploads, partition)
        case .ordering: TopicPartition(.changes, partition)
        case .fanOut: TopicPartition(.ordered, partition)
        }
    }
}

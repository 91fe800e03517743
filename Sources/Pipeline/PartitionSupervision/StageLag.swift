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
    ///   - limit: how long reading all those records may take; a partition whose record was not read by then has no lag in
    ///     seconds in that scrape.
    package func collectLag(
        of log: some ChangeLog, partitions: Int, now: @escaping @Sendable () -> Int64 = WallClock.microseconds,
        within limit: Duration = .seconds(2)
    ) {
        let positions = MetricStage.allCases.flatMap { stage in
            (0..<partitions).map { (stage, $0, position(of: stage, in: $0)) }
        }
        collect { samples in
            let deadline = ContinuousClock.now + limit
            for (stage, partition, position) in positions {
                guard let next = position.value else { continue }
                let labels: MetricLabels = [.stage: stage.rawValue, .partition: "\(partition)"]
                let source = TopicPartition(stage.topic, partition)
                do throws(ChangeLogError) {
                    let lag = max(0, try await log.range(of: source).end - Int64(next))
                    samples.set(.stageLagRecords, labels, Int(lag))
                    if lag == 0 {
                        samples.set(.stageLagSeconds, labels, 0)
                    } else if let time = try await log.time(of: source, at: Int64(next), until: deadline) {
                        samples.set(.stageLagSeconds, labels, Double(max(0, now() - time)) / 1_000_000)
                    }
                } catch {
                    // Without an answer from the log, the scrape has no lag of this partition.
                    continue
                }
            }
        }
    }
}

extension MetricStage {
    /// The topic that the stage consumes.
    fileprivate var topic: Topic {
        switch self {
        case .ingest: .uploads
        case .ordering: .changes
        case .fanOut: .ordered
        }
    }
}

extension ChangeLog {
    /// The time of the first record at or after an offset; `nil` when it cannot be read in time.
    fileprivate func time(
        of partition: TopicPartition, at offset: Int64, until deadline: ContinuousClock.Instant
    ) async throws(ChangeLogError) -> Int64? {
        guard ContinuousClock.now < deadline else { return nil }
        let reader = try await reader(of: partition, from: offset)
        let reading = Task { try await reader.next(maximumBytes: 1).first?.time }
        let limit = Task {
            try await Task.sleep(until: deadline)
            reading.cancel()
        }
        let time = await reading.result
        limit.cancel()
        await reader.close()
        switch time {
        case .success(let time): return time
        case .failure(let error as ChangeLogError): throw error
        // Cancelled: the deadline has passed.
        case .failure: return nil
        }
    }
}

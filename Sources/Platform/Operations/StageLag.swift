import ChangeLog
import Metrics

extension MetricRegistry {
    /// Shows how far each stage is behind the log, from where it says that it stands.
    ///
    /// Time is the log's own: the age of the oldest record that the stage has not finished with, which is read for
    /// that.
    ///
    /// - Parameters:
    ///   - now: the clock that the log's times are held against, in microseconds since 1970.
    ///   - patience: how long the log may take to show all those records; what it has not shown then is left out.
    package func collectLag(
        of log: some ChangeLog, partitions: Int, now: @escaping @Sendable () -> Int64 = WallClock.microseconds,
        patience: Duration = .seconds(2)
    ) {
        let places = MetricStage.allCases.flatMap { stage in
            (0..<partitions).map { (stage, $0, position(of: stage, in: $0)) }
        }
        collect { samples in
            let deadline = ContinuousClock.now + patience
            for (stage, partition, position) in places {
                guard let next = position.value else { continue }
                let labels: MetricLabels = [.stage: stage.rawValue, .partition: "\(partition)"]
                let place = TopicPartition(stage.topic, partition)
                do throws(ChangeLogError) {
                    let lag = max(0, try await log.range(of: place).end - Int64(next))
                    samples.set(.stageLagRecords, labels, Int(lag))
                    if lag == 0 {
                        samples.set(.stageLagSeconds, labels, 0)
                    } else if let time = try await log.time(of: place, at: Int64(next), until: deadline) {
                        samples.set(.stageLagSeconds, labels, Double(max(0, now() - time)) / 1_000_000)
                    }
                } catch {
                    // The log says nothing at the moment, and neither does this.
                    continue
                }
            }
        }
    }
}

extension MetricStage {
    /// What the stage consumes.
    fileprivate var topic: Topic {
        switch self {
        case .ingest: .uploads
        case .ordering: .changes
        case .fanOut: .ordered
        }
    }
}

extension ChangeLog {
    /// The time of the first record at an offset or behind it; `nil` when the log does not show it in time.
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
        // Cancelled: the time is over.
        case .failure: return nil
        }
    }
}

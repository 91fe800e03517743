/// A stage that consumes a topic, as labels name it.
package enum MetricStage: String, Sendable, Hashable, CaseIterable {
    /// Reads `uploads`.
    case ingest
    /// Reads `changes`.
    case ordering
    /// Reads `ordered`.
    case fanOut = "fanout"
}

extension MetricRegistry {
    /// Where a stage stands in a partition: the offset of the first record that it has not finished with; not known at first.
    package func position(of stage: MetricStage, in partition: Int) -> Gauge {
        gauge(.stageNextOffset, [.stage: stage.rawValue, .partition: "\(partition)"], startingWith: nil)
    }

    /// How often a stage tried again.
    package func retries(of stage: MetricStage) -> Counter { counter(.stageRetries, [.stage: stage.rawValue]) }
}

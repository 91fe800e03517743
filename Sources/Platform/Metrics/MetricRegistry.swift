import Synchronization

/// Creates the metrics of a process and exports them as text.
///
/// A stage gets its metrics from a registry when it is created and keeps them. The same metric with the same labels is
/// created once.
package final class MetricRegistry: Sendable {
    private enum Instrument {
        case counter(Counter)
        case gauge(Gauge)
        case histogram(Histogram)
    }

    private struct State {
        /// By metric and label text; bounded by the metrics that stages create.
        var instruments: [Metric: [String: Instrument]] = [:]
        var collectors: [@Sendable (inout MetricSamples) async -> Void] = []
    }

    private let state = Mutex(State())

    package init() {}

    /// Traps if the metric has another kind or other labels.
    package func counter(_ metric: Metric, _ labels: MetricLabels = [:]) -> Counter {
        let made = instrument(metric, labels) {
            guard case .counter = metric.kind else { preconditionFailure("\(metric.name) is not a counter") }
            return .counter(Counter())
        }
        guard case .counter(let counter) = made else { preconditionFailure("a metric has one kind") }
        return counter
    }

    /// Traps if the metric has another kind or other labels.
    ///
    /// - Parameter value: `nil`: unknown.
    package func gauge(_ metric: Metric, _ labels: MetricLabels = [:], startingWith value: Int? = 0) -> Gauge {
        let made = instrument(metric, labels) {
            guard case .gauge = metric.kind else { preconditionFailure("\(metric.name) is not a gauge") }
            return .gauge(Gauge(value))
        }
        guard case .gauge(let gauge) = made else { preconditionFailure("a metric has one kind") }
        return gauge
    }

    /// Traps if the metric has another kind or other labels.
    package func histogram(_ metric: Metric, _ labels: MetricLabels = [:]) -> Histogram {
        let made = instrument(metric, labels) {
            guard case .histogram(let scale) = metric.kind else {
                preconditionFailure("\(metric.name) is not a histogram")
            }
            return .histogram(Histogram(scale))
        }
        guard case .histogram(let histogram) = made else { preconditionFailure("a metric has one kind") }
        return histogram
    }

    /// Adds a collector, which adds samples to each export.
    package func collect(_ body: @escaping @Sendable (inout MetricSamples) async -> Void) {
        state.withLock { $0.collectors.append(body) }
    }

    private func instrument(_ metric: Metric, _ labels: MetricLabels, _ make: () -> Instrument) -> Instrument {
        precondition(metric.isDeclared, "\(metric.name) must be in Metric.all")
        let text = metric.labelText(labels)
        return state.withLock { state in
            if let known = state.instruments[metric]?[text] { return known }
            let made = make()
            state.instruments[metric, default: [:]][text] = made
            return made
        }
    }

    /// All metrics in the text format of Prometheus, version 0.0.4, in the order of `Metric.all`.
    package func text() async -> [UInt8] {
        let (instruments, collectors) = state.withLock { ($0.instruments, $0.collectors) }
        var samples = MetricSamples()
        for collector in collectors { await collector(&samples) }
        var text = PrometheusText()
        for metric in Metric.all {
            let series = (instruments[metric] ?? [:]).sorted { $0.key < $1.key }
            for (labels, instrument) in series {
                switch instrument {
                case .counter(let counter): text.write(metric, labels, counter.value)
                case .gauge(let gauge): if let value = gauge.value { text.write(metric, labels, value) }
                case .histogram(let histogram): text.write(metric, labels, histogram)
                }
            }
            for (labels, value) in samples.values[metric] ?? [] { text.write(metric, labels, value) }
        }
        return text.bytes
    }
}

/// The samples that collectors add to an export.
package struct MetricSamples: Sendable {
    /// By metric, with label text.
    fileprivate(set) var values: [Metric: [(labels: String, value: Double)]] = [:]

    package mutating func set(_ metric: Metric, _ value: Int) { set(metric, [:], Double(value)) }

    package mutating func set(_ metric: Metric, _ value: Double) { set(metric, [:], value) }

    package mutating func set(_ metric: Metric, _ labels: MetricLabels, _ value: Int) {
        set(metric, labels, Double(value))
    }

    /// Once for a metric and its labels.
    package mutating func set(_ metric: Metric, _ labels: MetricLabels, _ value: Double) {
        precondition(metric.isDeclared, "\(metric.name) must be in Metric.all")
        values[metric, default: []].append((metric.labelText(labels), value))
    }
}

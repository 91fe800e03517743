import Synchronization

/// The metrics of a process: makes them, and writes all of them as text.
///
/// A stage takes its numbers from a registry when it is made and keeps them; adding to them touches no registry. Asking twice
/// for the same metric with the same labels gives the same number.
package final class MetricRegistry: Sendable {
    private enum Instrument {
        case counter(Counter)
        case gauge(Gauge)
        case histogram(Histogram)
    }

    private struct State {
        /// By metric, then by the labels as they are written; as many as stages ask for when they are made.
        var instruments: [Metric: [String: Instrument]] = [:]
        var collectors: [@Sendable (inout MetricSamples) async -> Void] = []
    }

    private let state = Mutex(State())

    /// Makes an empty registry.
    package init() {}

    /// A counter; traps when the metric is of another kind or has other labels.
    package func counter(_ metric: Metric, _ labels: MetricLabels = [:]) -> Counter {
        let made = instrument(metric, labels) {
            guard case .counter = metric.kind else { preconditionFailure("\(metric.name) is no counter") }
            return .counter(Counter())
        }
        guard case .counter(let counter) = made else { preconditionFailure("a metric has one kind") }
        return counter
    }

    /// A gauge; traps when the metric is of another kind or has other labels.
    ///
    /// - Parameter value: what it starts with; `nil` where nothing is known at first.
    package func gauge(_ metric: Metric, _ labels: MetricLabels = [:], startingWith value: Int? = 0) -> Gauge {
        let made = instrument(metric, labels) {
            guard case .gauge = metric.kind else { preconditionFailure("\(metric.name) is no gauge") }
            return .gauge(Gauge(value))
        }
        guard case .gauge(let gauge) = made else { preconditionFailure("a metric has one kind") }
        return gauge
    }

    /// A histogram; traps when the metric is of another kind or has other labels.
    package func histogram(_ metric: Metric, _ labels: MetricLabels = [:]) -> Histogram {
        let made = instrument(metric, labels) {
            guard case .histogram(let scale) = metric.kind else {
                preconditionFailure("\(metric.name) is no histogram")
            }
            return .histogram(Histogram(scale))
        }
        guard case .histogram(let histogram) = made else { preconditionFailure("a metric has one kind") }
        return histogram
    }

    /// Has numbers that are kept elsewhere looked up each time that the text is written.
    package func collect(_ body: @escaping @Sendable (inout MetricSamples) async -> Void) {
        state.withLock { $0.collectors.append(body) }
    }

    private func instrument(_ metric: Metric, _ labels: MetricLabels, _ make: () -> Instrument) -> Instrument {
        precondition(metric.isDeclared, "\(metric.name) stands in Metric.all")
        let text = metric.labelText(labels)
        return state.withLock { state in
            if let known = state.instruments[metric]?[text] { return known }
            let made = make()
            state.instruments[metric, default: [:]][text] = made
            return made
        }
    }

    /// Everything as text in the format of Prometheus, version 0.0.4: metrics in the order of `Metric.all`, each with its help,
    /// its type and its series.
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

/// Numbers that are looked up while the text is written.
package struct MetricSamples: Sendable {
    /// By metric: the labels as they are written, and the value.
    fileprivate(set) var values: [Metric: [(labels: String, value: Double)]] = [:]

    /// Adds a number; once for a metric.
    package mutating func set(_ metric: Metric, _ value: Double) { set(metric, [:], value) }

    /// Adds a number; once for a metric and its labels.
    package mutating func set(_ metric: Metric, _ labels: MetricLabels, _ value: Double) {
        precondition(metric.isDeclared, "\(metric.name) stands in Metric.all")
        values[metric, default: []].append((metric.labelText(labels), value))
    }

    /// Adds a whole number; once for a metric.
    package mutating func set(_ metric: Metric, _ value: Int) { set(metric, [:], Double(value)) }

    /// Adds a whole number; once for a metric and its labels.
    package mutating func set(_ metric: Metric, _ labels: MetricLabels, _ value: Int) {
        set(metric, labels, Double(value))
    }
}

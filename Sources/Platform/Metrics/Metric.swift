/// What a metric is: its name, what it means, its kind and its labels.
///
/// Every metric of the program stands in this room, as a static member, so that one thing has one name everywhere. No label
/// may name an owner, a device or a row: labels come from small closed sets.
package struct Metric: Sendable, Hashable {
    /// What the numbers do.
    package enum Kind: Sendable, Hashable {
        /// They only grow.
        case counter
        /// They go up and down.
        case gauge
        /// They are counted by size.
        case histogram(HistogramScale)

        /// The word for it in the text format.
        package var name: String {
            switch self {
            case .counter: "counter"
            case .gauge: "gauge"
            case .histogram: "histogram"
            }
        }
    }

    /// The name, with its unit at the end; a counter's ends with `_total`.
    package let name: String
    /// The kind.
    package let kind: Kind
    /// The labels, in the order in which they are written.
    package let labels: [MetricLabel]
    /// What it means, in one sentence.
    package let help: String
    /// Whether combinations of labels that never came up are left out.
    let hidesZeros: Bool

    init(_ name: String, _ kind: Kind, _ help: String) { self.init(name, kind, [], help) }

    init(_ name: String, _ kind: Kind, _ labels: [MetricLabel], hidesZeros: Bool = false, _ help: String) {
        self.name = "weir_" + name
        self.kind = kind
        self.labels = labels
        self.help = help
        self.hidesZeros = hidesZeros
    }

    /// Metrics differ in their names.
    package static func == (one: Metric, other: Metric) -> Bool { one.name.utf8.elementsEqual(other.name.utf8) }

    /// Hashes the name.
    package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// The name of a label; the values of each are few and known beforehand.
package enum MetricLabel: String, Sendable, Hashable, CaseIterable {
    /// A stage that consumes a topic: ingest, ordering, fanout.
    case stage
    /// The number of a partition.
    case partition
    /// Why something was refused.
    case reason
    /// A path that the gateway serves, as its template, or `other`.
    case route
    /// The status of an answer.
    case status
    /// What became of a change or a message.
    case outcome
    /// The program's version.
    case version
}

/// The labels of one series, in any order.
package typealias MetricLabels = KeyValuePairs<MetricLabel, String>

/// The declaration of a metric.
///
/// All metrics of the program are static members in this module. Labels have small, closed sets of values: no label may
/// name an owner, a device or a row.
package struct Metric: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case counter
        case gauge
        case histogram(HistogramScale)

        /// The type in the text format.
        package var name: String {
            switch self {
            case .counter: "counter"
            case .gauge: "gauge"
            case .histogram: "histogram"
            }
        }
    }

    /// Ends with the unit, or with `_total` for a counter.
    package let name: String
    package let kind: Kind
    /// In the order of the exported text.
    package let labels: [MetricLabel]
    /// One sentence.
    package let help: String
    /// Whether series with the value 0 are omitted.
    let hidesZeros: Bool

    init(_ name: String, _ kind: Kind, _ help: String) { self.init(name, kind, [], help) }

    init(_ name: String, _ kind: Kind, _ labels: [MetricLabel], hidesZeros: Bool = false, _ help: String) {
        self.name = "weir_" + name
        self.kind = kind
        self.labels = labels
        self.help = help
        self.hidesZeros = hidesZeros
    }

    // By name.
    package static func == (one: Metric, other: Metric) -> Bool { one.name.utf8.elementsEqual(other.name.utf8) }

    package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// The name of a label.
package enum MetricLabel: String, Sendable, Hashable, CaseIterable {
    /// A stage that consumes a topic: ingest, ordering, fanout.
    case stage
    case partition
    case reason
    /// Why a token is refused.
    case cause
    /// The template of a path that the gateway serves, or `other`.
    case route
    /// The status of a response.
    case status
    /// The result of a change, a part of a batch or a request.
    case outcome
    /// A limit of a rate: caller-requests, device-bytes, …
    case limit
    case version
}

/// The labels of one series, in any order.
package typealias MetricLabels = KeyValuePairs<MetricLabel, String>

extension Metric {
    /// Every metric of the program, in the order of the exported text; docs/operations.md describes each.
    package static let all = process + http + gateway + log + stages + ingest + ordering + store + fanOut + link

    private static let declared = Set(all)

    /// Whether the metric is in `all`.
    var isDeclared: Bool { Self.declared.contains(self) }
}

/// Writes the text format of Prometheus, version 0.0.4.
struct PrometheusText {
    private(set) var bytes: [UInt8] = []
    private var current: Metric?

    mutating func write(_ metric: Metric, _ labels: String, _ value: Int) {
        if value == 0, metric.hidesZeros { return }
        begin(metric)
        line(metric.name, "", labels, "\(value)")
    }

    mutating func write(_ metric: Metric, _ labels: String, _ value: Double) {
        if value == 0, metric.hidesZeros { return }
        begin(metric)
        line(metric.name, "", labels, Self.text(value))
    }

    mutating func write(_ metric: Metric, _ labels: String, _ histogram: Histogram) {
        let (cumulative, sum) = histogram.snapshot
        let count = cumulative[cumulative.count - 1]
        if count == 0, metric.hidesZeros { return }
        begin(metric)
        let shown = Double(histogram.scale.unitsShown)
        let separator = labels.isEmpty ? "" : ","
        for (bound, count) in zip(histogram.scale.bounds, cumulative) {
            let bound = Self.text(Double(bound) / shown)
            line(metric.name, "_bucket", labels + separator + "le=\"\(bound)\"", "\(count)")
        }
        line(metric.name, "_bucket", labels + separator + "le=\"+Inf\"", "\(count)")
        line(metric.name, "_sum", labels, Self.text(Double(sum) / shown))
        line(metric.name, "_count", labels, "\(count)")
    }

    /// Writes help and type, before the first series of a metric.
    private mutating func begin(_ metric: Metric) {
        guard current != metric else { return }
        current = metric
        put("# HELP \(metric.name) \(Self.escaped(metric.help, quotes: false))\n")
        put("# TYPE \(metric.name) \(metric.kind.name)\n")
    }

    private mutating func line(_ name: String, _ suffix: String, _ labels: String, _ value: String) {
        put(name)
        put(suffix)
        if !labels.isEmpty { put("{\(labels)}") }
        put(" \(value)\n")
    }

    private mutating func put(_ text: String) { bytes += text.utf8 }

    /// A number in the text format; whole numbers without a point.
    static func text(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        if value == value.rounded(), abs(value) < 0x1p53 { return "\(Int(value))" }
        return "\(value)"
    }

    /// Escapes line breaks and backslashes, and quotes in a label's value.
    static func escaped(_ text: String, quotes: Bool) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\"" where quotes: escaped += "\\\""
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}

extension Metric {
    /// The label text in the metric's order: `stage="ingest",partition="3"`; traps for other labels than the metric's.
    func labelText(_ given: MetricLabels) -> String {
        precondition(given.count == labels.count, "\(name) has the labels \(labels)")
        return labels.map { label in
            guard let value = given.first(where: { $0.key == label })?.value else {
                preconditionFailure("\(name) needs the label \(label.rawValue)")
            }
            return "\(label.rawValue)=\"\(PrometheusText.escaped(value, quotes: true))\""
        }.joined(separator: ",")
    }
}

import Metrics
import Testing

/// The metrics as they are declared: what Prometheus asks of names.
@Suite struct MetricTests {
    @Test func namesDiffer() {
        #expect(Set(Metric.all.map(\.name)).count == Metric.all.count)
    }

    @Test func namesSayKindAndBaseUnit() {
        for metric in Metric.all {
            let name = metric.name
            #expect(name.wholeMatch(of: /weir_[a-z]+(_[a-z]+)*/) != nil)
            switch metric.kind {
            case .counter: #expect(name.hasSuffix("_total"))
            case .gauge: #expect(!name.hasSuffix("_total"))
            case .histogram(let scale):
                #expect(!name.hasSuffix("_total"))
                #expect(scale.bounds == scale.bounds.sorted() && Set(scale.bounds).count == scale.bounds.count)
                #expect((scale == .seconds) == name.hasSuffix("_seconds"), "\(name)")
                #expect((scale == .bytes) == name.hasSuffix("_bytes"), "\(name)")
            }
            for end in ["_count", "_sum", "_bucket"] { #expect(!name.hasSuffix(end), "\(name)") }
            for unit in ["milli", "micro", "nano", "kilo", "minute"] { #expect(!name.contains(unit), "\(name)") }
        }
    }

    @Test func helpIsASentence() {
        for help in Metric.all.map(\.help) {
            #expect(help.first?.isUppercase == true || help.first?.isNumber == true, "\(help)")
            #expect(help.hasSuffix("."), "\(help)")
        }
    }

    @Test func noLabelNamesAnOwnerADeviceOrARow() {
        #expect(
            Set(MetricLabel.allCases.map(\.rawValue)) == [
                "stage", "partition", "reason", "cause", "route", "status", "outcome", "version", "limit",
            ])
    }
}

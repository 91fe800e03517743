extension Metric {
    /// Every metric of the program, in the order in which the text has them; docs/operations.md explains each.
    package static let all = process + http + gateway + log + stages + ingest + ordering + store + fanOut + link

    private static let declared = Set(all)

    /// Whether the metric stands in `all`.
    var isDeclared: Bool { Self.declared.contains(self) }
}

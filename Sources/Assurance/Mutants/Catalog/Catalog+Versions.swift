/// Schema versions that are registered while devices of older ones write.
extension Catalog {
    private static let gatewayRequests = "Pipeline/Gateway/Requests/GatewayHandler.swift"
    private static let answers = "Pipeline/Gateway/Pulls/PullHandlers.swift"
    private static let machine = "Model/SyncModel/Ordering/OrderingMachine.swift"
    private static let changes = "Model/SyncModel/Ordering/ChangeRules.swift"

    static let versions: [Mutant] = [
        .expression(
            "changes of a version that a gateway has yet to learn are checked against an older one",
            in: gatewayRequests, "schemas()[version] == nil", "false"),
        .expression(
            "a gateway takes a device back to an older schema version", in: answers,
            "versionAhead(in: envelope)", "String?.none"),
        .expression(
            "a partition goes back to an older schema version", in: machine,
            "max(state.schemaOrdinal, version.version.ordinal)", "version.version.ordinal"),
        .expression(
            "a row lacks the columns that were added since it was written", in: changes,
            "values.lifted(to: reached.tables[table])", "values"),
        .expression(
            "the policy of a change is that of the partition's schema version", in: changes,
            "schema.tables[change.table].policy", "reached.tables[change.table].policy"),
        .expression(
            "a change of an older version replaces a row with later columns", in: changes,
            "part.replacesLaterColumns", "true", seeds: 8000, steps: 60),
    ]
}

import FanOut
import RecordStore
import SyncModel

/// Compares a partition's stream file with the tables of a replay at the same position.
struct StreamComparison<Expected: RecordStore>: Sendable {
    let partition: Int
    let schemas: SchemaHistory
    let expected: Expected
    let stream: StreamAudit
    private let rendering: StreamRendering

    init(partition: Int, schemas: SchemaHistory, expected: Expected, stream: StreamAudit) {
        self.partition = partition
        self.schemas = schemas
        self.expected = expected
        self.stream = stream
        rendering = StreamRendering(schemas)
    }

    /// Compares rows and outcomes, and checks the file.
    ///
    /// - Parameter ordinal: the schema version of the partition at its position.
    func run(ordinal: Int) async throws -> Finding {
        var differences = Differences()
        let names = RowNames(schemas[ordinal]?.schema)
        do {
            let rows = try await compareRows(ordinal, names, &differences)
            let outcomes = try await compareOutcomes(ordinal, names, &differences)
            if differences.count == 0 { try await stream.check() }
            return differences.finding(
                equal: "\(rows) rows and \(outcomes) outcomes up to offset \(stream.changesOffset) of changes")
        } catch let failure as StreamAudit.Failure {
            differences.add(Difference("the file", expected: "whole", found: failure.description))
            return differences.finding(equal: "")
        }
    }

    // MARK: Rows

    private func compareRows(
        _ ordinal: Int, _ names: RowNames, _ differences: inout Differences
    ) async throws -> Int {
        var count = 0
        var matched = 0
        var cursor: StreamAudit.Cursor?
        while true {
            let (rows, next) = try await stream.rows(after: cursor)
            guard let next else { break }
            cursor = next
            count += rows.count
            let made = try await expected.rows(rows.map(\.key), in: partition, schemaOrdinal: ordinal)
            let byKey = Dictionary(made.map { ($0.key, $0) }) { first, _ in first }
            for row in rows {
                // Each position in the file has one row, however often the file has its key.
                if let made = byKey[row.key], made.timeStamp == row.timeStamp, made.knowledgeID == row.knowledgeID {
                    matched += 1
                }
                if let difference = difference(of: row, from: byKey[row.key], ordinal, names) {
                    differences.add(difference)
                }
            }
        }
        // If as many rows match as there are, none is missing.
        var total = 0
        var located = differences
        try await expected.forEachChunk(of: partition, schemaOrdinal: ordinal) { chunk in
            if case .rows(let rows) = chunk { total += rows.count }
        }
        if matched < total {
            try await expected.forEachChunk(of: partition, schemaOrdinal: ordinal) { chunk in
                guard case .rows(let rows) = chunk else { return }
                let held = try await stream.held(rows.map(\.key))
                for row in rows where !held.contains(row.key) {
                    located.add(
                        Difference(
                            names.row(row.key), expected: "a row at timeStamp \(row.timeStamp)", found: "no such row"))
                }
            }
        }
        differences = located
        return count
    }

    private func difference(
        of row: StreamAudit.Row, from made: OrderedRow?, _ ordinal: Int, _ names: RowNames
    ) -> Difference? {
        let item = names.row(row.key)
        guard let made else {
            return Difference(item, expected: "no such row", found: DifferenceFormatter.json(row.json))
        }
        if made.knowledgeID != row.knowledgeID {
            return Difference("\(item), device", expected: "\(made.knowledgeID)", found: "\(row.knowledgeID)")
        }
        if made.timeStamp != row.timeStamp {
            return Difference("\(item), timeStamp", expected: "\(made.timeStamp)", found: "\(row.timeStamp)")
        }
        if made.isExact != row.isExact {
            return Difference("\(item), exact", expected: "\(made.isExact)", found: "\(row.isExact)")
        }
        if made.createdAt != row.createdAt {
            return Difference("\(item), created", expected: "\(made.createdAt)", found: "\(row.createdAt)")
        }
        for version in stride(from: ordinal, to: 0, by: -1) where rendering.json(of: made, ordinal: version) == row.json
        {
            let columns = schemas[version]?.schema.tables[row.key.table].columns.count ?? 0
            if columns == row.columns { return nil }
            return Difference("\(item), columns", expected: "\(columns)", found: "\(row.columns)")
        }
        return Difference(
            "\(item), JSON", expected: DifferenceFormatter.json(rendering.json(of: made, ordinal: ordinal)),
            found: DifferenceFormatter.json(row.json))
    }

    // MARK: Outcomes

    private func compareOutcomes(
        _ ordinal: Int, _ names: RowNames, _ differences: inout Differences
    ) async throws -> Int {
        var count = 0
        var matched = 0
        var number: Int64 = 0
        while true {
            let devices = try await stream.outcomes(after: number)
            guard let last = devices.last else { break }
            number = last.number
            let there = devices.flatMap { device in device.outcomes.map { (key: device.key, outcome: $0) } }
            let made = try await expected.progress(
                there.map { ProgressRequest(key: $0.key, batch: $0.outcome.batch) }, in: partition)
            count += there.count
            for (there, made) in zip(there, made) {
                let item = names.device(there.key)
                guard let outcome = made.outcome else {
                    differences.add(
                        Difference("\(item), batch \(there.outcome.batch)", expected: "no outcome", found: "an outcome")
                    )
                    continue
                }
                matched += 1
                if let difference = OutcomeDifference.first(outcome, there.outcome, item: item) {
                    differences.add(difference)
                }
            }
        }
        var total = 0
        try await expected.forEachChunk(of: partition, schemaOrdinal: ordinal) { chunk in
            if case .outcomes(let outcomes) = chunk { total += outcomes.count }
        }
        if matched < total {
            differences.add(Difference("kept outcomes", expected: "\(total)", found: "\(count)"))
        }
        return count
    }
}

import ChangeLog
import RecordStore
import SyncModel

/// Compares one partition's tables with those of a replay at the same position.
///
/// First by hash: both are read once, in any order. Only where the hashes differ are the rows looked up one by one. Memory
/// holds one chunk of each snapshot.
struct TableComparison<Expected: RecordReader, Found: RecordReader>: Sendable {
    let partition: Int
    let schemas: SchemaHistory
    /// The replay's tables.
    let expected: Expected
    let found: Found

    private struct Content: Sendable, Hashable {
        var rows = ContentSum()
        var outcomes = ContentSum()
        var applied = ContentSum()
        var usage = ContentSum()
    }

    func content(ordinal: Int) async throws -> Finding {
        async let made = content(of: expected, ordinal: ordinal)
        async let there = content(of: found, ordinal: ordinal)
        let (left, right) = try await (made, there)
        if left == right {
            return .equal(
                "\(left.rows.count) rows, hash \(left.rows.text.prefix(16)); \(left.outcomes.count) outcomes, hash "
                    + "\(left.outcomes.text.prefix(16)); \(left.applied.count) applied changes with a changeId, hash "
                    + "\(left.applied.text.prefix(16)); usage of \(left.usage.count) owners, hash "
                    + "\(left.usage.text.prefix(16))")
        }
        var differences = Differences()
        if left.rows != right.rows { try await locateRows(ordinal, &differences) }
        if left.outcomes != right.outcomes { try await locateOutcomes(ordinal, &differences) }
        if left.usage != right.usage { try await locateUsage(ordinal, &differences) }
        if left.applied != right.applied { try await locateAppliedChanges(ordinal, &differences) }
        return differences.finding(equal: "the hashes differ, the rows do not: the tables were written meanwhile")
    }

    // MARK: By hash

    private func content(of store: some RecordReader, ordinal: Int) async throws -> Content {
        var content = Content()
        var hash = EntryHash()
        try await store.forEachChunk(of: partition, schemaOrdinal: ordinal) { chunk in
            switch chunk {
            case .position: break
            case .rows(let rows): for row in rows { content.rows.add(hash.row(row)) }
            case .outcomes(let outcomes):
                for outcome in try await kept(outcomes, in: store) { content.outcomes.add(hash.outcome(outcome)) }
            case .usage(let usage): for stored in usage { content.usage.add(hash.usage(stored)) }
            }
        }
        try await store.forEachAppliedChange(of: partition) { changes in
            for change in changes { content.applied.add(hash.appliedChange(change)) }
        }
        return content
    }

    /// Adds the highest batch of their devices to outcomes.
    private func kept(_ outcomes: [StoredOutcome], in store: some RecordReader) async throws -> [KeptOutcome] {
        // A device's outcomes follow each other. Batch .max has no outcome, so that none is read.
        var requests: [ProgressRequest] = []
        for key in outcomes.lazy.map(\.key) where requests.last?.key != key {
            requests.append(ProgressRequest(key: key, batch: .max))
        }
        let answers = try await store.progress(requests, in: partition)
        var highest: [DeviceKey: Int64] = [:]
        for (request, answer) in zip(requests, answers) { highest[request.key] = answer.highestBatch }
        return outcomes.map {
            KeptOutcome(key: $0.key, outcome: $0.outcome, highestBatch: highest[$0.key] ?? 0)
        }
    }

    // MARK: One by one

    private func locateRows(_ ordinal: Int, _ differences: inout Differences) async throws {
        var located = differences
        let names = RowNames(schemas[ordinal]?.schema)
        try await found.forEachChunk(of: partition, schemaOrdinal: ordinal) { chunk in
            guard case .rows(let rows) = chunk else { return }
            let made = try await expected.rows(rows.map(\.key), in: partition, schemaOrdinal: ordinal)
            let byKey = Dictionary(made.map { ($0.key, $0) }) { first, _ in first }
            for row in rows {
                guard let made = byKey[row.key] else {
                    located.add(
                        Difference(names.row(row.key), expected: "no such row", found: "version \(row.version)"))
                    continue
                }
                if let difference = RowDifference(names).first(made, row) { located.add(difference) }
            }
        }
        try await expected.forEachChunk(of: partition, schemaOrdinal: ordinal) { chunk in
            guard case .rows(let rows) = chunk else { return }
            let there = try await found.rows(rows.map(\.key), in: partition, schemaOrdinal: ordinal)
            let keys = Set(there.map(\.key))
            for row in rows where !keys.contains(row.key) {
                located.add(
                    Difference(
                        names.row(row.key), expected: "version \(row.version) at timeStamp \(row.timeStamp)",
                        found: "no such row"))
            }
        }
        differences = located
    }

    private func locateOutcomes(_ ordinal: Int, _ differences: inout Differences) async throws {
        var located = differences
        let names = RowNames(schemas[ordinal]?.schema)
        try await found.forEachChunk(of: partition, schemaOrdinal: ordinal) { chunk in
            guard case .outcomes(let outcomes) = chunk else { return }
            let answers = try await progress(outcomes, in: expected)
            for (there, made) in zip(try await kept(outcomes, in: found), answers) {
                let item = names.device(there.key)
                if made.highestBatch != there.highestBatch {
                    located.add(
                        Difference(
                            "\(item), highest batch", expected: "\(made.highestBatch)", found: "\(there.highestBatch)"))
                } else if let outcome = made.outcome {
                    if let difference = OutcomeDifference.first(outcome, there.outcome, item: item) {
                        located.add(difference)
                    }
                } else {
                    located.add(
                        Difference("\(item), batch \(there.outcome.batch)", expected: "no outcome", found: "an outcome")
                    )
                }
            }
        }
        try await expected.forEachChunk(of: partition, schemaOrdinal: ordinal) { chunk in
            guard case .outcomes(let outcomes) = chunk else { return }
            for (made, there) in zip(outcomes, try await progress(outcomes, in: found)) where there.outcome == nil {
                located.add(
                    Difference(
                        "\(names.device(made.key)), batch \(made.outcome.batch)", expected: "an outcome",
                        found: "no outcome"))
            }
        }
        differences = located
    }

    private func locateUsage(_ ordinal: Int, _ differences: inout Differences) async throws {
        var located = differences
        try await found.forEachChunk(of: partition, schemaOrdinal: ordinal) { chunk in
            guard case .usage(let usage) = chunk else { return }
            let made = try await expected.usage(of: usage.map(\.owner), in: partition)
            for (there, made) in zip(usage, made) where made != there.usage {
                located.add(UsageDifference.difference(made, there.usage, of: there.owner))
            }
        }
        try await expected.forEachChunk(of: partition, schemaOrdinal: ordinal) { chunk in
            guard case .usage(let usage) = chunk else { return }
            let there = try await found.usage(of: usage.map(\.owner), in: partition)
            for (made, there) in zip(usage, there) where there == OwnerUsage() {
                located.add(UsageDifference.difference(made.usage, there, of: made.owner))
            }
        }
        differences = located
    }

    private func locateAppliedChanges(_ ordinal: Int, _ differences: inout Differences) async throws {
        var located = differences
        let names = RowNames(schemas[ordinal]?.schema)
        try await found.forEachAppliedChange(of: partition) { changes in
            let made = try await expected.appliedChanges(changes.map(\.changeKey), in: partition)
            for (there, made) in zip(changes, made) where made != there.change {
                located.add(AppliedChangeDifference.difference(made, there.change, of: there.changeKey, names))
            }
        }
        try await expected.forEachAppliedChange(of: partition) { changes in
            let there = try await found.appliedChanges(changes.map(\.changeKey), in: partition)
            for (made, there) in zip(changes, there) where there == nil {
                located.add(AppliedChangeDifference.difference(made.change, nil, of: made.changeKey, names))
            }
        }
        differences = located
    }

    private func progress(_ outcomes: [StoredOutcome], in store: some RecordReader) async throws -> [DeviceProgress] {
        try await store.progress(
            outcomes.map { ProgressRequest(key: $0.key, batch: $0.outcome.batch) }, in: partition)
    }
}

/// Compares the positions of two tables of a partition.
enum PositionComparison {
    /// The difference of a position after the end of `changes`; `nil` where it is not.
    static func beyond(_ changes: LogRange, _ position: StoredPosition) -> Finding? {
        guard position.state.nextOffset > changes.end else { return nil }
        let difference = Difference(
            "the partition's offset in changes", expected: "at most \(changes.end)",
            found: "\(position.state.nextOffset)")
        return .different(difference, count: 1)
    }

    /// - Parameter ordered: the offsets in `ordered` that the position may name.
    static func run(_ expected: StoredPosition, _ found: StoredPosition, ordered: ClosedRange<Int64>) -> Finding {
        var differences = Differences()
        let pairs: [(String, String, String)] = [
            ("newest timeStamp", "\(expected.state.timeStamp)", "\(found.state.timeStamp)"),
            ("offset in changes", "\(expected.state.nextOffset)", "\(found.state.nextOffset)"),
            ("schema version", "\(expected.state.schemaOrdinal)", "\(found.state.schemaOrdinal)"),
            ("uploads", describe(expected.state.uploads), describe(found.state.uploads)),
        ]
        for (part, made, there) in pairs where made != there {
            differences.add(Difference("the partition's \(part)", expected: made, found: there))
        }
        if !ordered.contains(found.orderedOffset) {
            differences.add(
                Difference(
                    "the partition's offset in ordered", expected: "\(ordered.lowerBound) to \(ordered.upperBound)",
                    found: "\(found.orderedOffset)"))
        }
        return differences.finding(equal: "at offset \(found.state.nextOffset) of changes")
    }

    private static func describe(_ uploads: [Int: UploadProgress]) -> String {
        uploads.isEmpty
            ? "none"
            : uploads.sorted { $0.key < $1.key }.map { "[\($0)] offset \($1.offset) part \($1.part)" }
                .joined(separator: ", ")
    }
}

import SyncModel
import Testing

/// Random sequences of messages against the naive model; a failure names the seed and the message.
@Suite struct OrderingPropertyTests {
    static let seeds: [UInt64] = Array(1...60)

    @Test func everyKindOfOutcomeAgreesWithTheNaiveModel() throws {
        var kinds = Set<String>()
        for seed in Self.seeds { kinds.formUnion(try run(seed: seed, parts: 120)) }
        // The sequences are useful only if they reach every outcome.
        #expect(
            kinds == [
                "applied", "deleted", "conflict", "row_gone", "missing_value", "row_too_large", "batch_aborted",
                "batch_rows_too_large", "change_mismatch", "quota_exceeded", "repeated", "dropped",
                "batch_mismatch", "outcome_expired", "history_changed", "held from 0", "held from before", "not held",
            ])
    }

    @Test func theSamePartsGiveTheSameResults() throws {
        for seed in Self.seeds.prefix(10) {
            let parts = sequence(seed: seed, parts: 100)
            var first = Partition(clock: .logTime)
            var second = Partition(clock: .logTime)
            for part in parts { #expect(try first.order(part) == second.order(part), "seed \(seed)") }
            #expect(first.rows == second.rows && first.state == second.state)
        }
    }

    /// A successor reads the stored rows, which have all columns of the partition's schema version.
    @Test func resumingFromTheStoredStateGivesTheSameResults() throws {
        for seed in Self.seeds.prefix(6) {
            let parts = sequence(seed: seed, parts: 60)
            var whole = Partition(clock: .logTime)
            var steps: [OrderingMachine.Step] = []
            var stored: [Partition] = []
            for part in parts {
                stored.append(whole.stored())
                steps.append(try whole.order(part))
            }
            for split in parts.indices {
                var partition = stored[split]
                for index in split..<parts.count {
                    #expect(try partition.order(parts[index]) == steps[index], "seed \(seed), split \(split)")
                }
                #expect(partition.stored().rows == whole.stored().rows)
                #expect(partition.state == whole.state && partition.devices == whole.devices)
                #expect(partition.usage == whole.usage && partition.applied == whole.applied)
            }
        }
    }

    /// Orders a sequence in the machine and the model, and tells which kinds of outcome it met.
    private func run(seed: UInt64, parts: Int) throws -> Set<String> {
        var random = RandomParts(seed: seed)
        var model = NaiveModel()
        var partition = Partition(clock: .logTime)
        var kinds = Set<String>()
        for number in 0..<parts {
            let part = random.next(model, newestSchema: 1 + number * 3 / parts)
            let before = model
            let expected = model.order(part)
            let step = try partition.order(part)
            let place: Comment = "seed \(seed), message \(number)"
            try #require(Self.verdict(of: step) == expected, place)
            let keys = Set(part.rowsTouched)
            for key in keys { try #require(partition.stored().rows[key] == model.row(key), place) }
            let written = keys.filter { before.versions[$0] != model.versions[$0] }
            try #require(Set(step.rows.map(\.key)) == written && step.rows.count == written.count, place)
            try #require(step.rows.map(\.timeStamp) == step.rows.map(\.timeStamp).sorted(), place)
            for written in step.written {
                try #require(written.before == before.row(written.row.key)?.timeStamp ?? .zero, place)
            }
            try checkPlaces(part, step, model, place)
            try #require(partition.state.timeStamp == TimeStamp(model.newest), place)
            try #require((step.outcome != nil) == (part.batch != nil && Self.isOrdered(expected)), place)
            try #require(partition.usage[part.owner] ?? OwnerUsage() == model.usage(of: part.owner), place)
            try checkDevice(part, step, before, place)
            kinds.formUnion(Self.kinds(expected))
        }
        return kinds
    }

    /// Conflicts and refusals have the row's locator after the part, other results have none.
    private func checkPlaces(
        _ part: ChangePart, _ step: OrderingMachine.Step, _ model: NaiveModel, _ place: Comment
    ) throws {
        guard case .ordered(let results, _) = step.decision else { return }
        for result in results {
            let row = model.row(RowKey(table: result.table, owner: part.owner, id: result.id))
            let isShown = !["applied", "deleted", "batch_rows_too_large"].contains(result.status.name)
            let expected = isShown ? row.map { RowLocator(knowledgeID: $0.knowledgeID, timeStamp: $0.timeStamp) } : nil
            try #require(result.locator == expected, place)
        }
    }

    /// Simulates a device that holds a row from the entry that a result names: what it sent and what it received
    /// must result in the row (I7).
    private func checkDevice(
        _ part: ChangePart, _ step: OrderingMachine.Step, _ before: NaiveModel, _ place: Comment
    ) throws {
        // Before rules version 5 a device might lack what others had written in columns of later versions.
        let own = Fixture.history[part.schema]?.schema
        let schema = part.rules < 5 ? own : Fixture.history[step.state.schemaOrdinal]?.schema
        let table = { (index: Int) in schema.flatMap { $0.tables.indices.contains(index) ? $0.tables[index] : nil } }
        for row in step.rows {
            let made = zip(part.changes, step.results).filter { change, _ in
                change.table == row.key.table && change.id == row.key.id
            }
            guard let heldFrom = made.compactMap(\.1.heldFrom).last, let table = table(row.key.table) else { continue }
            let old = before.row(row.key)
            let held = old.map { $0.timeStamp <= heldFrom } ?? true
            // A device without the previous row has some other row, which must not matter.
            var values = old.map { $0.values.lifted(to: table).json.map { held ? $0 : "other" } }
            var updatedAt = held ? old?.updatedAt : -1
            var isDeleted = held && old?.isDeleted == true
            var wasDeleted = old?.isDeleted == true
            for (change, result) in made {
                guard ["applied", "deleted"].contains(result.status.name) else { continue }
                var local = values ?? table.columns.map(NaiveModel.initial)
                // A row that is created again keeps nothing of the deleted one.
                let isRevival = wasDeleted && result.status.name == "applied" && !change.isDelete
                if isRevival, let known = own?.tables[row.key.table].columns.count, known < local.count {
                    local[known...] = table.columns[known...].map(NaiveModel.initial)[...]
                }
                wasDeleted = change.isDelete || result.status.name == "deleted"
                for (column, json) in change.values.json.enumerated() where json != "" { local[column] = json }
                values = local
                updatedAt = change.updatedAt
                isDeleted = change.isDelete || result.status.name == "deleted"
            }
            let columns = table.columns.count
            try #require(values?.prefix(columns) == row.values.json.prefix(columns), place)
            try #require(isDeleted == row.isDeleted, place)
            // A second delete of a row is applied and leaves the tombstone's time, which no device shows.
            if table.policy == .lastWriteWins, !isDeleted { try #require(updatedAt == row.updatedAt, place) }
        }
    }

    private func sequence(seed: UInt64, parts: Int) -> [ChangePart] {
        var random = RandomParts(seed: seed)
        var model = NaiveModel()
        return (0..<parts).map { number in
            let part = random.next(model, newestSchema: 1 + number * 3 / parts)
            _ = model.order(part)
            return part
        }
    }

    private static func verdict(of step: OrderingMachine.Step) -> NaiveModel.Verdict {
        switch step.decision {
        case nil: .dropped
        case .ordered(let results, _): .ordered(results.map(answer))
        case .repeated(let outcome): .repeated(outcome.results.map(answer))
        case .refused(let refusal): .refused(refusal.rawValue)
        }
    }

    private static func answer(_ result: ChangeResult) -> NaiveModel.Answer {
        var answer = NaiveModel.Answer(
            index: result.index, name: result.status.name, heldFrom: result.heldFrom?.rawValue)
        switch result.status {
        case .applied(let timeStamp, let version, let maker):
            (answer.timeStamp, answer.version, answer.maker) = (timeStamp.rawValue, version, maker?.text)
        case .deleted(let timeStamp, let version, let maker):
            (answer.timeStamp, answer.version, answer.maker) = (timeStamp.rawValue, version, maker.text)
        case .conflict, .refused: break
        }
        return answer
    }

    private static func isOrdered(_ verdict: NaiveModel.Verdict) -> Bool {
        if case .ordered = verdict { true } else { false }
    }

    private static func kinds(_ verdict: NaiveModel.Verdict) -> [String] {
        switch verdict {
        case .dropped: ["dropped"]
        case .repeated: ["repeated"]
        case .refused(let code): [code]
        case .ordered(let answers):
            answers.flatMap { answer in
                let held = answer.heldFrom.map { $0 == 0 ? "held from 0" : "held from before" } ?? "not held"
                return [answer.name] + (answer.timeStamp == nil ? [] : [held])
            }
        }
    }
}

extension Partition {
    /// The partition as a store returns it: rows with all columns of the partition's schema version.
    func stored() -> Partition {
        var copy = self
        guard let reached = schemas[state.schemaOrdinal]?.schema else { return copy }
        copy.rows = rows.mapValues { row in
            var row = row
            row.values = row.values.lifted(to: reached.tables[row.key.table])
            return row
        }
        return copy
    }
}

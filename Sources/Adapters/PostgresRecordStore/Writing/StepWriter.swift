import Postgres
import RecordStore
import RelationalTables
import SyncModel

/// Writes steps as one transaction in one pipeline: locks, positions, owners, rows, outcomes and the commit, so that the
/// transaction is open only while the server executes it.
final class StepWriter {
    /// What a statement of the pipeline does, which explains its error.
    enum Purpose {
        case control
        case lock
        case position
        case owners
        case rows([RowLocator])
        case outcomes
    }

    /// Indexes of a step and of a row in it.
    struct RowLocator {
        let step: Int
        let row: Int
    }

    private let connection: PostgresConnection
    private let tables: PreparedTables<TableLayout>
    private let settings: ShardSettings
    private let history: CommitHistory
    private let steps: [StoreStep]
    private let isInserting: Bool
    /// Of each statement that was sent.
    private(set) var purposes: [Purpose] = []
    private var names: [RowArrays.Shape: String] = [:]

    /// - Parameter isInserting: whether a row's first version is inserted without a conflict check.
    init(
        _ connection: PostgresConnection, _ tables: PreparedTables<TableLayout>, _ settings: ShardSettings,
        _ history: CommitHistory, steps: [StoreStep], isInserting: Bool
    ) {
        self.connection = connection
        self.tables = tables
        self.settings = settings
        self.history = history
        self.steps = steps
        self.isInserting = isInserting
    }

    /// Writes all steps and commits.
    ///
    /// - Throws: `PostgresError` of a statement in `purposes`; `RecordStoreError` if a row does not fit its table. The
    ///   transaction may then be open.
    func write() throws {
        let statements = settings.statements
        let shapes = try shapes()
        let names = try connection.prepare(
            [
                "BEGIN", "COMMIT", statements.lock, statements.updatePositions, statements.insertPositions,
                statements.insertOwners, statements.updateDevices, statements.writeOutcomes,
                statements.writeAppliedChanges, statements.writeUsage,
            ] + shapes.map(\.text))
        let (begin, commit, lock, update, insert) = (names[0], names[1], names[2], names[3], names[4])
        let (insertOwners, updateDevices, writeOutcomes, writeApplied) = (names[5], names[6], names[7], names[8])
        let writeUsage = names[9]
        for (shape, name) in zip(shapes, names.dropFirst(10)) { self.names[shape.shape] = name }
        try connection.pipeline { pipeline in
            func send(_ name: String, _ parameters: PostgresParameters, _ purpose: Purpose) throws(PostgresError) {
                purposes.append(purpose)
                try pipeline.send(name, parameters)
            }
            try send(begin, PostgresParameters(), .control)
            try send(lock, locks(), .lock)
            for round in rounds() {
                for (name, hasPosition) in [(insert, false), (update, true)] {
                    let indices = round.filter { (steps[$0].expected != nil) == hasPosition }
                    if !indices.isEmpty { try send(name, positions(indices), .position) }
                }
                if let parameters = owners(round) { try send(insertOwners, parameters, .owners) }
                try sendRows(round, send)
                let outcomes = round.flatMap { steps[$0].outcomes }
                let applied = round.flatMap { steps[$0].applied }
                if !outcomes.isEmpty || !applied.isEmpty {
                    let arrays = DevicesTable.Outcomes(outcomes, others: applied.map(\.key))
                    try send(updateDevices, arrays.devices, .outcomes)
                    if !outcomes.isEmpty { try send(writeOutcomes, arrays.outcomes, .outcomes) }
                }
                if let usage = OwnersTable.arrays(round.map { steps[$0] }) { try send(writeUsage, usage, .outcomes) }
                if !applied.isEmpty { try send(writeApplied, AppliedChangesTable.arrays(applied), .outcomes) }
            }
            try send(commit, PostgresParameters(), .control)
        }
    }

    /// The shapes of all rows, each with the statement that writes them.
    private func shapes() throws -> [(shape: RowArrays.Shape, text: String)] {
        var texts: [RowArrays.Shape: String] = [:]
        for step in steps {
            for row in step.rows {
                let shape = shape(of: row)
                guard texts[shape] == nil else { continue }
                let layout = try tables.layout(of: row.key, columns: shape.columns)
                texts[shape] = layout.write(columns: shape.columns, areNew: shape.areNew)
            }
        }
        return texts.map { ($0.key, $0.value) }
    }

    // MARK: Positions and owners

    /// Groups the steps so that each group has a partition once: a later step of a partition depends on the earlier one.
    private func rounds() -> [[Int]] {
        var rounds: [[Int]] = []
        var counts: [Int: Int] = [:]
        for (index, step) in steps.enumerated() {
            let round = counts[step.partition, default: 0]
            counts[step.partition] = round + 1
            if round == rounds.count { rounds.append([]) }
            rounds[round].append(index)
        }
        return rounds
    }

    private func locks() -> PostgresParameters {
        var partitions = BinaryArray(.integer)
        // In rising order, which prevents deadlocks.
        for partition in Set(steps.map(\.partition)).sorted() { partitions.append(Int32(partition)) }
        var parameters = PostgresParameters()
        parameters.append(settings.lockSpace)
        parameters.append(partitions)
        return parameters
    }

    /// - Parameter indices: steps that all have an expected position, or all none.
    private func positions(_ indices: [Int]) -> PostgresParameters {
        var partitions = BinaryArray(.integer)
        var new = PartitionsTable.Positions()
        var expected: PartitionsTable.Positions?
        for step in indices.map({ steps[$0] }) {
            partitions.append(Int32(step.partition))
            new.append(step.position)
            if let position = step.expected {
                if expected == nil { expected = PartitionsTable.Positions() }
                expected?.append(position)
            }
        }
        var parameters = PostgresParameters([partitions] + new.arrays + (expected?.arrays ?? []))
        parameters.append(Int64(indices.count))
        return parameters
    }

    private func owners(_ round: [Int]) -> PostgresParameters? {
        var owners = BinaryArray(.text)
        var partitions = BinaryArray(.integer)
        for step in round.map({ steps[$0] }) {
            for owner in history.unknownOwners(step) {
                owners.append(owner.text)
                partitions.append(Int32(step.partition))
            }
        }
        return owners.count > 0 ? PostgresParameters([owners, partitions]) : nil
    }

    // MARK: Rows

    private func shape(of row: OrderedRow) -> RowArrays.Shape {
        RowArrays.Shape(
            table: row.key.table, columns: row.values.count, areNew: isInserting && row.version == 1)
    }

    private func sendRows(
        _ round: [Int], _ send: (String, PostgresParameters, Purpose) throws -> Void
    ) throws {
        var open: [RowArrays.Shape: (arrays: RowArrays, locators: [RowLocator])] = [:]
        func flush(_ shape: RowArrays.Shape) throws {
            guard let name = names[shape], let rows = open[shape], !rows.locators.isEmpty else { return }
            try send(name, rows.arrays.parameters, .rows(rows.locators))
            open[shape]?.arrays.removeAll()
            open[shape]?.locators = []
        }
        for index in round {
            for (number, row) in steps[index].rows.enumerated() {
                let shape = shape(of: row)
                if open[shape] == nil {
                    let layout = try tables.layout(of: row.key, columns: shape.columns)
                    open[shape] = (RowArrays(layout, columns: shape.columns), [])
                }
                try open[shape]?.arrays.append(row)
                open[shape]?.locators.append(RowLocator(step: index, row: number))
                if open[shape]?.arrays.isFull ?? false { try flush(shape) }
            }
        }
        for shape in open.keys { try flush(shape) }
    }

    /// Finds the row that Postgres rejects: writes each one with a statement of its own, and rolls back.
    func rejectedRow(among locators: [RowLocator]) throws -> (RowKey, PostgresError)? {
        let begin = try connection.prepare(["BEGIN"])[0]
        let rows = locators.map { steps[$0.step].rows[$0.row] }
        do {
            try connection.pipeline { pipeline in
                try pipeline.send(begin)
                for row in rows {
                    let shape = shape(of: row)
                    guard let name = names[shape] else { continue }
                    let layout = try tables.layout(of: row.key, columns: shape.columns)
                    var arrays = RowArrays(layout, columns: shape.columns)
                    try arrays.append(row)
                    try pipeline.send(name, arrays.parameters)
                }
            }
        } catch let error as PostgresError where !error.isConnectionLost {
            try connection.rollBack()
            guard let statement = error.statement, rows.indices.contains(statement - 1) else { return nil }
            return (rows[statement - 1].key, error)
        }
        try connection.rollBack()
        return nil
    }
}

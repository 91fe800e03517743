import Postgres
import RecordStore
import SyncModel

/// Sends steps as one transaction in one pipeline: locks, positions, owners, rows, outcomes, and the commit with them, so
/// that the transaction is open no longer than the server works on it.
final class StepWriter {
    /// What a statement of the pipeline does, by which its error is understood.
    enum Purpose {
        case control
        case lock
        case position
        case owners
        /// Rows, as places in the steps: the step's and the row's.
        case rows([RowLocator])
        case outcomes
    }

    /// A row among the steps.
    struct RowLocator {
        let step: Int
        let row: Int
    }

    private let connection: PostgresConnection
    private let tables: PreparedTables
    private let settings: ShardSettings
    private let memory: ShardMemory
    private let steps: [StoreStep]
    private let isInserting: Bool
    /// What each statement was sent for.
    private(set) var purposes: [Purpose] = []
    private var names: [RowArrays.Shape: String] = [:]

    /// - Parameter isInserting: whether a row's first version is written as a row that does not exist.
    init(
        _ connection: PostgresConnection, _ tables: PreparedTables, _ settings: ShardSettings, _ memory: ShardMemory,
        steps: [StoreStep], isInserting: Bool
    ) {
        self.connection = connection
        self.tables = tables
        self.settings = settings
        self.memory = memory
        self.steps = steps
        self.isInserting = isInserting
    }

    /// Writes all steps and commits.
    ///
    /// - Throws: `PostgresError`, whose statement `purposes` explains; `RecordStoreError` where a row does not fit its
    ///   table. The transaction may be open then.
    func write() throws {
        let begin = try connection.prepare("BEGIN")
        let commit = try connection.prepare("COMMIT")
        let lock = try connection.prepare(tables.statements.lock)
        let own = try prepareOwn()
        try prepareRows()
        try connection.pipeline { pipeline in
            func send(_ name: String, _ parameters: PostgresParameters, _ purpose: Purpose) throws(PostgresError) {
                purposes.append(purpose)
                try pipeline.send(name, parameters)
            }
            try send(begin, PostgresParameters(), .control)
            try send(lock, locks(), .lock)
            for round in rounds() {
                for (name, parameters) in positions(round, own) { try send(name, parameters, .position) }
                if let parameters = owners(round) { try send(own.settle, parameters, .owners) }
                try sendRows(round, send)
                let outcomes = round.flatMap { steps[$0].outcomes }
                if !outcomes.isEmpty {
                    let arrays = OutcomeArrays(outcomes)
                    try send(own.raise, arrays.devices, .outcomes)
                    try send(own.keep, arrays.outcomes, .outcomes)
                }
            }
            try send(commit, PostgresParameters(), .control)
        }
    }

    // MARK: Preparation

    private struct SystemNames {
        let move: String
        let begin: String
        let settle: String
        let raise: String
        let keep: String
    }

    private func prepareOwn() throws(PostgresError) -> SystemNames {
        let statements = tables.statements
        return SystemNames(
            move: try connection.prepare(statements.move), begin: try connection.prepare(statements.begin),
            settle: try connection.prepare(statements.settle), raise: try connection.prepare(statements.raise),
            keep: try connection.prepare(statements.keep))
    }

    private func prepareRows() throws {
        for step in steps {
            for row in step.rows {
                let shape = shape(of: row)
                guard names[shape] == nil else { continue }
                let layout = try tables.layout(of: row.key, columns: shape.columns)
                names[shape] = try connection.prepare(layout.write(columns: shape.columns, areNew: shape.areNew))
            }
        }
    }

    // MARK: Positions and owners

    /// The steps in groups that have each partition once: a later step of a partition builds on the one before it.
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
        // In one order, so that no two workers wait for each other.
        for partition in Set(steps.map(\.partition)).sorted() { partitions.append(Int32(partition)) }
        var parameters = PostgresParameters()
        parameters.append(settings.lockSpace)
        parameters.append(partitions)
        return parameters
    }

    private func positions(_ round: [Int], _ own: SystemNames) -> [(String, PostgresParameters)] {
        let (moving, new) = (
            round.filter { steps[$0].expected != nil }, round.filter { steps[$0].expected == nil }
        )
        var sent: [(String, PostgresParameters)] = []
        if !new.isEmpty { sent.append((own.begin, parameters(new))) }
        if !moving.isEmpty { sent.append((own.move, parameters(moving))) }
        return sent
    }

    private func parameters(_ indices: [Int]) -> PostgresParameters {
        var partitions = BinaryArray(.integer)
        var new = PositionArrays()
        var old = PositionArrays()
        var hasOld = false
        for step in indices.map({ steps[$0] }) {
            partitions.append(Int32(step.partition))
            new.append(step.position)
            if let expected = step.expected {
                old.append(expected)
                hasOld = true
            }
        }
        var parameters = PostgresParameters()
        for array in [partitions] + new.all + (hasOld ? old.all : []) { parameters.append(array) }
        parameters.append(Int64(indices.count))
        return parameters
    }

    private func owners(_ round: [Int]) -> PostgresParameters? {
        var owners = BinaryArray(.text)
        var partitions = BinaryArray(.integer)
        for step in round.map({ steps[$0] }) {
            for owner in memory.unsettled(step) {
                owners.append(owner.text)
                partitions.append(Int32(step.partition))
            }
        }
        guard owners.count > 0 else { return nil }
        var parameters = PostgresParameters()
        parameters.append(owners)
        parameters.append(partitions)
        return parameters
    }

    // MARK: Rows

    private func shape(of row: OrderedRow) -> RowArrays.Shape {
        RowArrays.Shape(
            table: row.key.table, columns: row.values.count, areNew: isInserting && row.version == 1)
    }

    private func sendRows(
        _ round: [Int], _ send: (String, PostgresParameters, Purpose) throws -> Void
    ) throws {
        var open: [RowArrays.Shape: (arrays: RowArrays, places: [RowLocator])] = [:]
        func flush(_ shape: RowArrays.Shape) throws {
            guard let name = names[shape], let rows = open[shape], !rows.places.isEmpty else { return }
            try send(name, rows.arrays.parameters, .rows(rows.places))
            open[shape]?.arrays.removeAll()
            open[shape]?.places = []
        }
        for index in round {
            for (place, row) in steps[index].rows.enumerated() {
                let shape = shape(of: row)
                if open[shape] == nil {
                    let layout = try tables.layout(of: row.key, columns: shape.columns)
                    open[shape] = (RowArrays(layout.table, columns: shape.columns), [])
                }
                try open[shape]?.arrays.append(row)
                open[shape]?.places.append(RowLocator(step: index, row: place))
                if open[shape]?.arrays.isFull ?? false { try flush(shape) }
            }
        }
        for shape in open.keys { try flush(shape) }
    }

    /// The first of some rows that Postgres refuses by itself; all is rolled back.
    func refusedRow(among places: [RowLocator]) throws -> (RowKey, PostgresError)? {
        let begin = try connection.prepare("BEGIN")
        let rows = places.map { steps[$0.step].rows[$0.row] }
        do {
            try connection.pipeline { pipeline in
                try pipeline.send(begin)
                for row in rows {
                    let shape = shape(of: row)
                    guard let name = names[shape] else { continue }
                    let layout = try tables.layout(of: row.key, columns: shape.columns)
                    var arrays = RowArrays(layout.table, columns: shape.columns)
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

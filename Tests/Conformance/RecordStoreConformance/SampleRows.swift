import Seeded
import SyncModel

func owner(_ text: String) -> SyncID { SyncID(unchecked: text) }

func device(_ knowledgeID: String, of caller: String = "caller") -> Device {
    Device(caller: SyncID(unchecked: caller), knowledgeID: KnowledgeID(unchecked: knowledgeID))
}

func values(_ json: [String]) -> RowValues {
    var values = RowValues()
    for value in json { values.append(Array(value.utf8)) }
    return values
}

/// A row of `every_type` in which one column has a value.
func everyTypeRow(_ id: String, column: Int, _ json: String, timeStamp: Int64 = 1) -> OrderedRow {
    var all = Array(repeating: "null", count: 10)
    all[column] = json
    return row(Sample.everyType, "owner", id, timeStamp, all)
}

/// A row of `order`.
func orderRow(_ id: String, _ text: String, of owner: String = "owner", timeStamp: Int64 = 1) -> OrderedRow {
    row(Sample.order, owner, id, timeStamp, ["\"\(text)\"", "7", "null"])
}

func row(_ table: Int, _ owner: String, _ id: String, _ timeStamp: Int64, _ json: [String]) -> OrderedRow {
    OrderedRow(
        key: RowKey(table: table, owner: SyncID(unchecked: owner), id: RowID(unchecked: id)),
        knowledgeID: KnowledgeID(unchecked: "creator"), timeStamp: TimeStamp(timeStamp), version: 1, isDeleted: false,
        createdAt: 1_700_000_000_000_001, updatedAt: 1_700_000_000_000_002, writer: device("writer"), writerBatch: 3,
        isExact: true, othersTimeStamp: .zero, values: values(json))
}

func outcome(_ batch: Int64, results: [ChangeResult] = [], summary: BatchSummary? = nil) -> Outcome {
    let hash = (0..<32).map { UInt8(truncatingIfNeeded: batch &+ $0) }
    return Outcome(
        batch: batch, contentHash: hash, timeStamp: TimeStamp(batch % 1000 + 1), results: results, summary: summary)
}

extension SeededRandom {
    /// A row of `every_type` in which each column has one of its edge values, or none.
    mutating func everyTypeRow(_ id: String, timeStamp: Int64) -> OrderedRow {
        let all = EdgeValues.byColumn.map { edges in
            next() % 4 == 0 ? "null" : edges.randomElement(using: &self) ?? "null"
        }
        var made = row(Sample.everyType, "owner", id, timeStamp, all)
        made.isDeleted = next() % 4 == 0
        made.version = Int64(next() % 1000)
        return made
    }
}

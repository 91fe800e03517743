import DeviceModel
import SyncModel
import SyncWire

@testable import Chaos

/// Answers, edits and records for the tests of judgments.
enum Sample {
    static let owner = SyncID(unchecked: "anna")
    static let other = SyncID(unchecked: "berta")
    static let device = Device(caller: owner, knowledgeID: KnowledgeID(unchecked: "k1"))
    static let schema = Schema(tables: [Table(name: "note", columns: [Column(name: "title", type: .text)])])

    /// An edit of a row; the values do not matter.
    static func edit(_ id: String, of owner: SyncID = owner, isDelete: Bool = false) -> Edit {
        Edit(table: 0, owner: owner, id: id, isDelete: isDelete, values: [0: #""t""#])
    }

    static func answer(_ json: String) throws -> Answer { try Answer(Array(json.utf8)) }

    /// An answer with applied changes of the given timeStamps.
    static func applied(_ timeStamps: Int...) throws -> Answer {
        let results = timeStamps.map { #"{"status":"applied","timeStamp":\#($0),"version":1,"knowledgeId":"k1"}"# }
        return try answer(#"{"batch":{"batch":1,"results":[\#(results.joined(separator: ","))]}}"#)
    }

    /// A page with rows of `note`, by owner, id and timeStamp.
    static func page(
        _ rows: [(owner: String, id: String, timeStamp: Int)], hasMore: Bool = false, more: String = ""
    ) throws -> Answer {
        let list = rows.map {
            #"{"table":"note","id":"\#($0.id)","syncId":"\#($0.owner)","knowledgeId":"k1","timeStamp":\#($0.timeStamp),"version":1,"deleted":false,"values":{"title":"t"}}"#
        }
        return try answer(
            #"{"changes":[\#(list.joined(separator: ","))],"knowledge":[],"hasMore":\#(hasMore)\#(more)}"#)
    }

    static func row(
        _ id: String, _ timeStamp: Int64, title: String = #""t""#, batch: Int64 = 1
    ) -> OrderedRow {
        var values = RowValues()
        values.append(Array(title.utf8))
        return OrderedRow(
            key: RowKey(table: 0, owner: owner, id: RowID(unchecked: id)), knowledgeID: device.knowledgeID,
            timeStamp: TimeStamp(rawValue: timeStamp)!, version: 1, isDeleted: false, createdAt: 1, updatedAt: 1,
            writer: device, writerBatch: batch, isExact: true, othersTimeStamp: .zero, values: values)
    }

    /// Part 0 of a batch.
    static func part(_ batch: Int64 = 1, upload: Int64 = 0) -> ChangePart {
        ChangePart(
            epoch: "e", schema: SchemaVersion(ordinal: 1, of: schema).hash,
            upload: UploadReference(partition: 0, offset: upload),
            logTime: 1, part: 0, owner: owner, device: device, batch: batch,
            contentHash: Array(repeating: 1, count: 32), changes: [],
            summary: BatchSummary(changeCount: 0))
    }

    /// The result of a batch whose changes were applied at the given timeStamps.
    static func piece(
        _ timeStamps: [Int64], batch: Int64 = 1, at offset: Int64 = 0, verdict: OrderedPiece.Verdict = .ordered
    ) -> OrderedPiece {
        let rows = timeStamps.enumerated().map {
            WrittenRow(row("r\($0.offset)", $0.element, batch: batch), before: .zero)
        }
        let results = timeStamps.enumerated().map { index, timeStamp in
            ChangeResult(
                index: index, table: 0, id: RowID(unchecked: "r\(index)"),
                status: .applied(
                    timeStamp: TimeStamp(rawValue: timeStamp)!, version: 1, knowledgeID: device.knowledgeID))
        }
        return OrderedPiece(
            epoch: "e", changesOffset: offset, schema: SchemaVersion(ordinal: 1, of: schema).hash,
            upload: UploadReference(partition: 0, offset: offset), uploadPart: 0, logTime: 1,
            timeStamp: TimeStamp(rawValue: timeStamps.last ?? 1)!, owner: owner, device: device, batch: batch,
            verdict: verdict, contentHash: Array(repeating: 1, count: 32), rows: rows, results: results,
            summary: BatchSummary(changeCount: timeStamps.count))
    }
}

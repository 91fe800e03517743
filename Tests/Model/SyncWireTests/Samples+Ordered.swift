import SyncModel
import SyncWire

extension Sample {
    static let ordered = [
        sample("a result with every kind of row and status", piece, json: pieceJSON),
        sample("a repeat", bare(.repeated), json: bareJSON("VERDICT_REPEATED")),
        sample("a mismatch", bare(.refused(.batchMismatch)), json: bareJSON("VERDICT_BATCH_MISMATCH")),
        sample("an expired outcome", bare(.refused(.outcomeExpired)), json: bareJSON("VERDICT_OUTCOME_EXPIRED")),
        sample("another history", bare(.refused(.historyChanged)), json: bareJSON("VERDICT_HISTORY_CHANGED")),
    ]

    static let results = [
        result(0, "r1", .applied(timeStamp: TimeStamp(101), version: 1, knowledgeID: device.knowledgeID), .zero),
        result(1, "r2", .applied(timeStamp: .zero, version: 0, knowledgeID: nil)),
        result(2, "r3", .applied(timeStamp: .maximum, version: .max, knowledgeID: other), .maximum),
        result(3, "r4", .deleted(timeStamp: TimeStamp(7), version: 2, knowledgeID: device.knowledgeID)),
        result(4, "r5", .deleted(timeStamp: TimeStamp(8), version: 3, knowledgeID: other), TimeStamp(5)),
        result(5, "r6", .conflict, locator: RowLocator(knowledgeID: device.knowledgeID, timeStamp: .maximum)),
        result(
            6, "r7", .refused(.batchAborted, message: ""),
            locator: RowLocator(knowledgeID: other, timeStamp: TimeStamp(9))),
        result(7, longest, .refused(.missingValue, message: "a new row needs \u{E9}")),
    ]

    static let resultsJSON = """
        [{"id": "r1", "status": "STATUS_APPLIED", "time_stamp": "101", "version": "1", "held_from": "0"},
         {"index": 1, "id": "r2", "status": "STATUS_APPLIED", "without_row": true},
         {"index": 2, "id": "r3", "status": "STATUS_APPLIED", "time_stamp": "9007199254740991",
          "version": "9223372036854775807", "knowledge_id": "k\u{E9}2", "held_from": "9007199254740991"},
         {"index": 3, "id": "r4", "status": "STATUS_DELETED", "time_stamp": "7", "version": "2"},
         {"index": 4, "id": "r5", "status": "STATUS_DELETED", "time_stamp": "8", "version": "3",
          "knowledge_id": "k\u{E9}2", "held_from": "5"},
         {"index": 5, "id": "r6", "status": "STATUS_CONFLICT", "time_stamp": "9007199254740991"},
         {"index": 6, "id": "r7", "status": "STATUS_REFUSED", "time_stamp": "9", "knowledge_id": "k\u{E9}2",
          "code": "REFUSAL_CODE_BATCH_ABORTED"},
         {"index": 7, "id": "\(longest)", "status": "STATUS_REFUSED", "code": "REFUSAL_CODE_MISSING_VALUE",
          "message": "a new row needs \u{E9}"}]
        """

    static let piece = OrderedPiece(
        epoch: epoch, changesOffset: .max, piece: Int(Int32.max), isLast: true, schema: hash,
        upload: UploadReference(partition: 2, offset: 9), uploadPart: 1, logTime: -5, timeStamp: .maximum,
        owner: SyncID(unchecked: "xyz"), device: device, batch: .max, verdict: .ordered, contentHash: contentHash,
        touchedBytes: .max,
        rows: [
            WrittenRow(row("r1", TimeStamp(101), values: values("\"A\"", "1")), before: .zero),
            WrittenRow(
                row(
                    longest, .maximum, knowledgeID: other, version: .max, isDeleted: true, createdAt: 0,
                    updatedAt: .min, isExact: true, others: .maximum, values: RowValues()),
                before: TimeStamp(TimeStamp.maximum.rawValue - 1)),
        ],
        results: results, summary: BatchSummary(changeCount: 8, otherOwners: [SyncID(unchecked: "xyz")]))

    static let pieceJSON = """
        {"format": 1, "epoch": "\(epoch)", "changes_offset": "9223372036854775807", "piece": 2147483647,
         "is_last": true, "schema": "\(hash)", "upload_partition": 2, "upload_offset": "9", "upload_part": 1,
         "log_time": "-5", "time_stamp": "9007199254740991", "owner": "xyz", "caller": "abc", "knowledge_id": "k1",
         "rows": [
           {"id": "r1", "time_stamp": "101", "version": "1",
            "values": {"column": ["\(base64("\"A\""))", "\(base64("1"))"]}},
           {"table": 1, "id": "\(longest)", "knowledge_id": "k\u{E9}2", "time_stamp": "9007199254740991",
            "version": "9223372036854775807", "is_deleted": true, "created_at": "0",
            "updated_at": "-9223372036854775808", "is_exact": true, "others_time_stamp": "9007199254740991",
            "before": "9007199254740990"}],
         "batch": "9223372036854775807", "verdict": "VERDICT_ORDERED", "content_hash": "\(base64(contentHash))",
         "tables": [{"name": "person"}, {"table": 1, "name": "note"}], "results": \(resultsJSON),
         "summary": {"change_count": 8, "other_owners": ["xyz"]}, "touched_bytes": "9223372036854775807"}
        """

    static let storage = [
        Sample(
            "a stored outcome", "Outcome",
            Outcome(
                batch: 9, contentHash: contentHash, timeStamp: .maximum, results: results,
                summary: BatchSummary(
                    changeCount: 9, refusals: [Refusal(index: 8, code: .invalidChange, message: "m")])),
            json: """
                {"format": 1, "batch": "9", "content_hash": "\(base64(contentHash))", "knowledge_id": "k1",
                 "results": \(resultsJSON), "summary": {"change_count": 9,
                   "refusals": [{"index": 8, "code": "REFUSAL_CODE_INVALID_CHANGE", "message": "m"}]},
                 "time_stamp": "9007199254740991"}
                """),
        Sample(
            "a stored outcome without results", "Outcome",
            Outcome(batch: .max, contentHash: [], timeStamp: .zero, results: []),
            json: #"{"format": 1, "batch": "9223372036854775807"}"#),
        Sample("no upload positions", "UploadPositions", UploadPositions([:]), json: #"{"format": 1}"#),
        Sample(
            "upload positions", "UploadPositions",
            UploadPositions([
                7: UploadProgress(offset: .max, part: Int(Int32.max)), 0: UploadProgress(offset: 0, part: 0),
                Int(Int32.max): UploadProgress(offset: 1, part: 2),
            ]),
            json: """
                {"format": 1, "uploads": [{}, {"partition": 7, "offset": "9223372036854775807", "part": 2147483647},
                 {"partition": 2147483647, "offset": "1", "part": 2}]}
                """),
        Sample("no positions of a device", "DevicePositions", DevicePositions([:]), json: #"{"format": 1}"#),
        Sample(
            "positions of a device", "DevicePositions",
            DevicePositions([SyncID(unchecked: "xyz"): .zero, SyncID(unchecked: "abc"): .maximum]),
            json: """
                {"format": 1, "owners": [{"owner": "abc", "time_stamp": "9007199254740991"}, {"owner": "xyz"}]}
                """),
    ]

    static func row(
        _ id: String, _ timeStamp: TimeStamp, knowledgeID: KnowledgeID = device.knowledgeID, version: Int64 = 1,
        isDeleted: Bool = false, createdAt: Int64 = -5, updatedAt: Int64 = -5, isExact: Bool = false,
        others: TimeStamp = .zero, values: RowValues
    ) -> OrderedRow {
        OrderedRow(
            key: RowKey(table: isDeleted ? 1 : 0, owner: SyncID(unchecked: "xyz"), id: RowID(unchecked: id)),
            knowledgeID: knowledgeID, timeStamp: timeStamp, version: version, isDeleted: isDeleted,
            createdAt: createdAt, updatedAt: updatedAt, writer: device, writerBatch: .max, isExact: isExact,
            othersTimeStamp: others, values: values)
    }

    private static func result(
        _ index: Int, _ id: String, _ status: ChangeResult.Status, _ heldFrom: TimeStamp? = nil,
        locator: RowLocator? = nil
    ) -> ChangeResult {
        ChangeResult(
            index: index, table: 0, id: RowID(unchecked: id), status: status, heldFrom: heldFrom, locator: locator)
    }

    private static func bare(_ verdict: OrderedPiece.Verdict) -> OrderedPiece {
        OrderedPiece(
            epoch: epoch, changesOffset: 0, isLast: false, schema: hash,
            upload: UploadReference(partition: 0, offset: 0), uploadPart: 0, logTime: 0, timeStamp: .zero,
            owner: device.caller, device: device, batch: nil, verdict: verdict)
    }

    private static func bareJSON(_ verdict: String) -> String {
        """
        {"format": 1, "epoch": "\(epoch)", "schema": "\(hash)", "owner": "abc", "caller": "abc", "knowledge_id": "k1",
         "verdict": "\(verdict)"}
        """
    }

    private static func sample(_ name: String, _ piece: OrderedPiece, json: String) -> Sample {
        Sample(name, "OrderedPiece", piece, bytes: piece.encode(naming: schema), json: json)
    }
}

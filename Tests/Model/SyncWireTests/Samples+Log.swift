import SyncModel
import SyncWire

extension Sample {
    static let uploads = [
        Sample(
            "a batch with nothing optional", "ChangeBatch",
            ChangeBatch(
                epoch: "", rules: 1, schema: hash, device: device, batch: nil, grants: [], changes: [0x5B, 0x5D]),
            json: """
                {"format": 1, "rules": 1, "schema": "\(hash)", "caller": "abc", "knowledge_id": "k1",
                 "changes": "\(base64("[]"))"}
                """),
        Sample(
            "a batch with everything at its greatest", "ChangeBatch",
            ChangeBatch(
                epoch: longest, rules: Int(Int32.max), schema: hash,
                device: Device(caller: SyncID(unchecked: longest), knowledgeID: KnowledgeID(unchecked: longest)),
                batch: .max, isAtomic: true,
                grants: [
                    Grant(owner: SyncID(unchecked: longest), access: .write),
                    Grant(owner: SyncID(unchecked: "x"), access: .read),
                ],
                limits: .greatest,
                changes: [UInt8](repeating: 0x20, count: 20_000)),
            json: """
                {"format": 1, "epoch": "\(longest)", "rules": 2147483647, "schema": "\(hash)", "caller": "\(longest)",
                 "knowledge_id": "\(longest)", "batch": "9223372036854775807", "is_atomic": true,
                 "grants": [{"owner": "\(longest)", "access": "ACCESS_WRITE"}, {"owner": "x", "access": "ACCESS_READ"}],
                 "changes": "\(base64([UInt8](repeating: 0x20, count: 20_000)))",
                 "limits": {"max_changes": 100000, "max_value_bytes": 16777216, "max_row_bytes": 33554432,
                  "max_batch_row_bytes": 1073741824, "max_owner_rows": "1099511627776",
                  "max_owner_bytes": "1125899906842624"}}
                """),
    ]

    static let changes = [
        sample(
            "an empty part",
            ChangePart(
                epoch: epoch, schema: hash, upload: UploadReference(partition: 0, offset: 0), logTime: 0, part: 0,
                owner: device.caller, device: device, batch: nil, contentHash: contentHash, changes: []),
            json: """
                {"format": 1, "epoch": "\(epoch)", "rules": \(RulesVersion.current), "schema": "\(hash)", "owner": "abc", "caller": "abc",
                 "knowledge_id": "k1", "content_hash": "\(base64(contentHash))"}
                """),
        sample("a part with every kind of change", part, json: partJSON),
        sample(
            "a part of another history before 1970",
            ChangePart(
                epoch: epoch, rules: Int(Int32.max), schema: hash,
                upload: UploadReference(partition: Int(Int32.max), offset: .max), logTime: .min, part: Int(Int32.max),
                owner: SyncID(unchecked: longest), device: device, batch: .max, contentHash: contentHash,
                hasOtherEpoch: true, maxRowBytes: 16, maxBatchRowBytes: 1 << 20, maxOwnerRows: 0,
                maxOwnerBytes: 0, changes: [],
                summary: BatchSummary(changeCount: 0)),
            json: """
                {"format": 1, "epoch": "\(epoch)", "rules": 2147483647, "schema": "\(hash)",
                 "upload_partition": 2147483647, "upload_offset": "9223372036854775807",
                 "log_time": "-9223372036854775808", "part": 2147483647, "owner": "\(longest)", "caller": "abc",
                 "knowledge_id": "k1", "batch": "9223372036854775807", "content_hash": "\(base64(contentHash))",
                 "is_other_history": true, "summary": {}, "max_row_bytes": 16, "max_batch_row_bytes": 1048576,
                 "max_owner_rows": "0", "max_owner_bytes": "0"}
                """),
    ]

    static let part = ChangePart(
        epoch: epoch, schema: hash, upload: UploadReference(partition: 3, offset: 300),
        logTime: 1_767_322_985_000_001, part: 0, owner: device.caller, device: device, batch: 7,
        contentHash: contentHash, isAtomic: true, hasIngestRefusal: true,
        changes: [
            Change(
                index: 0, table: 0, id: RowID(unchecked: "r1"), knowledgeID: device.knowledgeID,
                values: values("\"A\"", "null")),
            Change(
                index: 2, table: 1, id: RowID(unchecked: longest), knowledgeID: other, isDelete: true,
                values: RowValues(), base: .maximum, ifBase: true, isForLiveRow: true, ifUnchanged: true,
                updatedAt: .min, isAltered: true),
            Change(
                index: Int(Int32.max), table: 0, id: RowID(unchecked: "r3"), knowledgeID: device.knowledgeID,
                values: values(nil, "3", nil), base: TimeStamp(1), updatedAt: 0),
            Change(
                index: 4, table: 0, id: RowID(unchecked: "r4"), knowledgeID: device.knowledgeID,
                values: values(nil), updatedAt: .max),
            Change(
                index: 5, table: 0, id: RowID(unchecked: "r5"), knowledgeID: device.knowledgeID, isDelete: true,
                values: RowValues(),
                identity: ChangeIdentity(
                    id: ShortDigest(prefixOf: contentHash), content: ShortDigest(prefixOf: contentHash.reversed()))),
        ],
        summary: BatchSummary(
            changeCount: Int(Int32.max), otherOwners: [SyncID(unchecked: "x"), SyncID(unchecked: "\u{1F600}")],
            refusals: RefusalCode.allCases.enumerated().map {
                Refusal(index: $0, code: $1, message: $0 == 0 ? "" : "column \($1)")
            }))

    static let partJSON = """
        {"format": 1, "epoch": "\(epoch)", "rules": \(RulesVersion.current), "schema": "\(hash)", "upload_partition": 3,
         "upload_offset": "300", "log_time": "1767322985000001", "owner": "abc", "caller": "abc", "knowledge_id": "k1",
         "batch": "7", "content_hash": "\(base64(contentHash))", "is_atomic": true, "has_ingest_refusal": true,
         "changes": [
           {"id": "r1", "values": {"column": ["\(base64("\"A\""))", "\(base64("null"))"]}},
           {"index": 2, "table": 1, "id": "\(longest)", "knowledge_id": "k\u{E9}2", "is_delete": true,
            "base": "9007199254740991", "if_base": true, "if_unchanged": true, "is_for_live_row": true,
            "updated_at": "-9223372036854775808", "is_altered": true},
           {"index": 2147483647, "id": "r3", "values": {"column": ["", "\(base64("3"))", ""]}, "base": "1",
            "updated_at": "0"},
           {"index": 4, "id": "r4", "values": {"column": [""]}, "updated_at": "9223372036854775807"},
           {"index": 5, "id": "r5", "is_delete": true, "change_id": "\(base64(Array(contentHash.prefix(16))))",
            "content": "\(base64(Array(contentHash.reversed().prefix(16))))"}],
         "tables": [{"name": "person"}, {"table": 1, "name": "note"}],
         "summary": {"change_count": 2147483647, "other_owners": ["x", "\u{1F600}"], "refusals": [
           {"code": "REFUSAL_CODE_NOT_GRANTED"},
           {"index": 1, "code": "REFUSAL_CODE_UNKNOWN_TABLE", "message": "column unknownTable"},
           {"index": 2, "code": "REFUSAL_CODE_UNKNOWN_COLUMN", "message": "column unknownColumn"},
           {"index": 3, "code": "REFUSAL_CODE_INVALID_VALUE", "message": "column invalidValue"},
           {"index": 4, "code": "REFUSAL_CODE_VALUE_TOO_LARGE", "message": "column valueTooLarge"},
           {"index": 5, "code": "REFUSAL_CODE_ROW_TOO_LARGE", "message": "column rowTooLarge"},
           {"index": 6, "code": "REFUSAL_CODE_BATCH_ROWS_TOO_LARGE", "message": "column batchRowsTooLarge"},
           {"index": 7, "code": "REFUSAL_CODE_INVALID_CHANGE", "message": "column invalidChange"},
           {"index": 8, "code": "REFUSAL_CODE_MISSING_VALUE", "message": "column missingValue"},
           {"index": 9, "code": "REFUSAL_CODE_ROW_GONE", "message": "column rowGone"},
           {"index": 10, "code": "REFUSAL_CODE_BATCH_ABORTED", "message": "column batchAborted"},
           {"index": 11, "code": "REFUSAL_CODE_CHANGE_MISMATCH", "message": "column changeMismatch"},
           {"index": 12, "code": "REFUSAL_CODE_QUOTA_EXCEEDED", "message": "column quotaExceeded"}]}}
        """

    static let deadLetters: [Sample] =
        [
            Sample(
                "refused changes", "DeadLetter",
                DeadLetter(
                    upload: UploadReference(partition: 1, offset: 2), logTime: -1,
                    subject: .changes(
                        RefusedChanges(
                            device: device, batch: 1,
                            changes: [
                                .init(Refusal(index: 0, code: .rowGone, message: "m"), json: [0x7B]),
                                .init(Refusal(index: 3, code: .invalidChange, message: ""), json: []),
                            ], others: [.rowGone: 2, .invalidChange: 9_999]))),
                json: """
                    {"format": 1, "upload_partition": 1, "upload_offset": "2", "log_time": "-1",
                     "changes": {"caller": "abc", "knowledge_id": "k1", "batch": "1",
                       "changes": [
                         {"refusal": {"code": "REFUSAL_CODE_ROW_GONE", "message": "m"}, "json": "\(base64("{"))"},
                         {"refusal": {"index": 3, "code": "REFUSAL_CODE_INVALID_CHANGE"}}],
                       "others": [{"code": "REFUSAL_CODE_INVALID_CHANGE", "count": 9999},
                         {"code": "REFUSAL_CODE_ROW_GONE", "count": 2}]}}
                    """),
            Sample(
                "a broken record", "DeadLetter",
                DeadLetter(
                    upload: UploadReference(partition: 0, offset: 0), logTime: 0,
                    subject: .record(RecordRefusal(.wrongPartition, "elsewhere"), value: [0, 255])),
                json: """
                    {"format": 1, "record": {"reason": "elsewhere", "value": "\(base64([0, 255]))",
                       "code": "RECORD_REFUSAL_CODE_WRONG_PARTITION"}}
                    """),
        ] + emptyRecords

    /// An empty record, by each code.
    private static let emptyRecords = RecordRefusal.Code.allCases.map { code in
        let subject = DeadLetter.Subject.record(RecordRefusal(code, ""), value: [])
        return Sample(
            "an empty record: \(code.rawValue)", "DeadLetter",
            DeadLetter(upload: UploadReference(partition: 0, offset: 0), logTime: 0, subject: subject),
            json: #"{"format": 1, "record": {"code": "RECORD_REFUSAL_CODE_\#(code.rawValue.uppercased())"}}"#)
    }

    private static func sample(_ name: String, _ part: ChangePart, json: String) -> Sample {
        Sample(name, "ChangePart", part, bytes: part.encode(naming: schema), json: json)
    }
}

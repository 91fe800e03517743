import SyncModel
import SyncWire

extension Sample {
    static let control = [
        Sample(
            "a history", "Control", ControlRecord.history(History(epoch: epoch, partitions: 64)),
            json: """
                {"format": 1, "history": {"epoch": "\(epoch)", "partitions": 64, "partition_function": "murmur2",
                 "piece_size": 524288, "record_size": 33554432}}
                """),
        Sample(
            "a history in three databases", "Control",
            ControlRecord.history(History(epoch: epoch, partitions: 64, shards: 3)),
            json: """
                {"format": 1, "history": {"epoch": "\(epoch)", "partitions": 64, "partition_function": "murmur2",
                 "piece_size": 524288, "shards": 3, "record_size": 33554432}}
                """),
        Sample(
            "a history that counts from zero", "Control",
            ControlRecord.history(
                History(
                    epoch: longest, partitions: Int(Int32.max), partitionFunction: longest, clock: .sequence(first: 0),
                    pieceSize: Int(Int32.max), recordSize: Int(Int32.max))),
            json: """
                {"format": 1, "history": {"epoch": "\(longest)", "partitions": 2147483647,
                 "partition_function": "\(longest)", "sequence_first": "0", "piece_size": 2147483647,
                 "record_size": 2147483647}}
                """),
        Sample(
            "a schema without tables", "Control",
            ControlRecord.schema(entry(1, Schema(tables: []))),
            // The SHA-256 of no bytes.
            json: """
                {"format": 1, "schema": {"ordinal": 1, "hash": "e3b0c44298fc1c149afbf4c8996fb924", "schema": {}}}
                """),
        Sample(
            "a schema with everything", "Control", ControlRecord.schema(entry(Int(Int32.max), fullSchema)),
            json: """
                {"format": 1, "schema": {"ordinal": 2147483647, "hash": "\(SchemaVersion.hash(of: fullSchema))",
                 "schema": \(fullSchemaJSON)}}
                """),
        Sample(
            "a schema with a rule for deletes", "Control", ControlRecord.schema(entry(2, reassigningSchema)),
            json: """
                {"format": 1, "schema": {"ordinal": 2, "hash": "\(SchemaVersion.hash(of: reassigningSchema))",
                 "schema": {"tables": [{"name": "t", "policy": "POLICY_LAST_WRITE_WINS", "columns": [
                   {"name": "parent", "type": "TYPE_TEXT", "is_nullable": true, "references": "t",
                    "on_delete": "ON_DELETE_REASSIGN"}]}]}}}
                """),
        Sample(
            "a record of uploads that is left out", "Control",
            ControlRecord.skip(
                SkippedRecord(.init(.uploads, 63, offset: .max), reason: "edge 7, reverted", schemaVersions: 4)),
            json: """
                {"format": 1, "skip": {"source": "SOURCE_UPLOADS", "partition": 63, "offset": "9223372036854775807",
                 "reason": "edge 7, reverted", "schema_versions": 4}}
                """),
        Sample(
            "the first record of changes, left out before any schema version", "Control",
            ControlRecord.skip(
                SkippedRecord(
                    .init(.changes, 0, offset: 0), reason: String(repeating: "r", count: 1000), schemaVersions: 0)),
            json: """
                {"format": 1, "skip": {"source": "SOURCE_CHANGES", "reason": "\(String(repeating: "r", count: 1000))"}}
                """),
        Sample(
            "a device that is revoked", "Control", ControlRecord.device(DeviceDecision(device, isRevoked: true)),
            json: #"{"format": 1, "device": {"caller": "abc", "knowledge_id": "k1", "is_revoked": true}}"#),
        Sample(
            "a device that is allowed again", "Control",
            ControlRecord.device(DeviceDecision(device, isRevoked: false)),
            json: #"{"format": 1, "device": {"caller": "abc", "knowledge_id": "k1"}}"#),
        Sample("the tables alone, which are hashed", "Schema", fullSchema, json: fullSchemaJSON),
    ]

    static func entry(_ ordinal: Int, _ schema: Schema) -> SchemaHistory.Entry {
        SchemaHistory.Entry(version: SchemaVersion(ordinal: ordinal, of: schema), schema: schema)
    }

    static let reassigningSchema = Schema(tables: [
        Table(
            name: "t", policy: .lastWriteWins,
            columns: [Column(name: "parent", type: .text, references: "t", onDelete: .reassign)])
    ])

    static let fullSchema = Schema(tables: [
        Table(
            name: "person", policy: .lastSyncWins,
            columns: [
                Column(
                    name: "name", type: .text, isNullable: false, defaultValue: Array("\"\"".utf8),
                    maximumLength: Int(Int32.max)),
                Column(name: "parent", type: .uuid, references: "person"),
                Column(name: "age", type: .integer, maximumLength: 0),
                Column(name: "height", type: .real),
                Column(name: "isHere", type: .boolean, isNullable: false),
            ]),
        Table(
            name: "_note", policy: .lastWriteWins,
            columns: [
                Column(name: "price", type: .decimal(precision: 12, scale: 2)),
                Column(name: "count", type: .decimal(precision: 3, scale: 0)),
                Column(name: "at", type: .timestamp),
                Column(name: "day", type: .date),
            ]),
        Table(
            name: String(repeating: "t", count: 63), policy: .checkBase,
            columns: [Column(name: "data", type: .bytes), Column(name: "extra", type: .json)]),
        Table(name: "empty", columns: []),
    ])

    static let fullSchemaJSON = """
        {"tables": [
          {"name": "person", "policy": "POLICY_LAST_SYNC_WINS", "columns": [
            {"name": "name", "type": "TYPE_TEXT", "default_value": "\(base64("\"\""))", "maximum_length": 2147483647},
            {"name": "parent", "type": "TYPE_UUID", "is_nullable": true, "references": "person"},
            {"name": "age", "type": "TYPE_INTEGER", "is_nullable": true, "maximum_length": 0},
            {"name": "height", "type": "TYPE_REAL", "is_nullable": true},
            {"name": "isHere", "type": "TYPE_BOOLEAN"}]},
          {"name": "_note", "policy": "POLICY_LAST_WRITE_WINS", "columns": [
            {"name": "price", "type": "TYPE_DECIMAL", "precision": 12, "scale": 2, "is_nullable": true},
            {"name": "count", "type": "TYPE_DECIMAL", "precision": 3, "is_nullable": true},
            {"name": "at", "type": "TYPE_TIMESTAMP", "is_nullable": true},
            {"name": "day", "type": "TYPE_DATE", "is_nullable": true}]},
          {"name": "\(String(repeating: "t", count: 63))", "policy": "POLICY_CHECK_BASE", "columns": [
            {"name": "data", "type": "TYPE_BYTES", "is_nullable": true},
            {"name": "extra", "type": "TYPE_JSON", "is_nullable": true}]},
          {"name": "empty", "policy": "POLICY_LAST_SYNC_WINS"}]}
        """
}

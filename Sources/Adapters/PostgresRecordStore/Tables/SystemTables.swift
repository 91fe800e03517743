/// The tables in which the store keeps what is no row: no schema may use names with their prefix.
struct SystemTables: Sendable {
    /// The format of these tables that this code knows; each migration to a later one comes behind the others.
    static let format = 1

    private let schema: String

    init(schema: String) {
        self.schema = schema
    }

    /// Formats that the tables went through.
    var migrations: TableShape {
        table(
            "weir_migrations",
            [
                .init("format", "integer", comment: "Format of Weir's own tables"),
                .init(
                    "applied_at", "timestamp with time zone", defaultValue: "now()", comment: "When it was reached"),
            ], key: ["format"], "Formats of Weir's own tables, the greatest in force")
    }

    /// Which part of the partitions of which history this database holds.
    var shard: TableShape {
        table(
            "weir_shard",
            [
                .init("shard", "integer", comment: "Number of this database, from 0"),
                .init("shards", "integer", comment: "How many databases there are"),
                .init("epoch", "text", comment: "Id of the history whose rows these are, for ever"),
            ], key: ["shard"],
            "The place of this database in a history: it holds the partitions p with p mod shards = shard")
    }

    /// The schema versions that the tables were prepared for, each with its tables as `weir.v1.Schema`.
    var schemas: TableShape {
        table(
            "weir_schemas",
            [
                .init("ordinal", "integer", comment: "Number of the version"),
                .init("hash", "text", comment: "Hash by which devices name it"),
                .init("tables", "bytea", comment: "Its tables, weir.v1.Schema in protobuf"),
            ], key: ["ordinal"], "Schema versions that the tables were made for")
    }

    /// Where each partition stands; `uploads` is `weir.v1.UploadPositions`.
    var partitions: TableShape {
        table(
            "weir_partitions",
            [
                .init("partition", "integer", comment: "Partition of the topic changes"),
                .init("ordered_offset", "bigint", comment: "Offset in ordered behind the last result written"),
                .init("next_offset", "bigint", comment: "Offset in changes of the next message"),
                .init("time_stamp", "bigint", comment: "Newest time_stamp given"),
                .init("schema_ordinal", "integer", comment: "Greatest schema version that a message named"),
                .init("uploads", "bytea", comment: "Newest parts seen, weir.v1.UploadPositions in protobuf"),
            ], key: ["partition"], "Where each partition stands: moved with its rows in one transaction", fillFactor: 10
        )
    }

    /// The partition of every owner that has rows or outcomes: an owner lives in one for ever (I3).
    var owners: TableShape {
        table(
            "weir_owners",
            [
                .init("sync_id", "text", comment: "Owner of rows", maximumBytes: 255),
                .init("partition", "integer", comment: "Its partition, for ever"),
            ], key: ["sync_id"], "Partition of each owner that has rows or batches")
    }

    /// The progress of each device with each owner.
    ///
    /// `outcomes` counts all it ever had, which says where the next one goes.
    var devices: TableShape {
        table(
            "weir_devices",
            [
                .init("owner", "text", comment: "Owner whose rows the device writes", maximumBytes: 255),
                .init("caller", "text", comment: "Caller whose device it is", maximumBytes: 255),
                .init("knowledge_id", "text", comment: "The device", maximumBytes: 255),
                .init("device", "bigint", isIdentity: true, comment: "Number of this row, for weir_outcomes"),
                .init("highest_batch", "bigint", comment: "Greatest batch number seen"),
                .init("outcomes", "bigint", comment: "How many batches were seen"),
            ], key: ["owner", "caller", "knowledge_id"], "Progress of each device with each owner", fillFactor: 80)
    }

    /// The newest 16 outcomes of each device, `weir.v1.Outcome`: a new one takes the place of the oldest.
    var outcomes: TableShape {
        table(
            "weir_outcomes",
            [
                .init("device", "bigint", comment: "The device, weir_devices.device"),
                .init("place", "integer", comment: "0 to 15"),
                .init("batch", "bigint", comment: "Number of the batch"),
                .init("outcome", "bytea", comment: "What became of it, weir.v1.Outcome in protobuf"),
            ], key: ["device", "place"], "What became of the newest 16 batches of each device", fillFactor: 80)
    }

    /// All.
    var all: [TableShape] { [migrations, shard, schemas, partitions, owners, devices, outcomes] }

    /// Indexes besides the primary keys.
    var indexes: [String] {
        [
            "CREATE INDEX weir_owners_by_partition ON \(owners.qualifiedName) (partition, sync_id)"
        ]
    }

    private func table(
        _ name: String, _ columns: [TableShape.Column], key: [String], _ comment: String, fillFactor: Int = 100
    ) -> TableShape {
        TableShape(
            schema: schema, name: name, columns: columns, primaryKey: key, comment: comment, fillFactor: fillFactor)
    }
}

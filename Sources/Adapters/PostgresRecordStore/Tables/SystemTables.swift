/// The tables of the store itself; the schema file reserves their prefix.
struct SystemTables: Sendable {
    /// The format of these tables that this code writes.
    ///
    /// Earlier formats do not have what owners have, which only a replay can count.
    static let format = 3

    private let schema: String

    init(schema: String) {
        self.schema = schema
    }

    var migrations: TableDefinition {
        table(
            "weir_migrations",
            [
                .init("format", "integer", comment: "Format of Weir's system tables"),
                .init(
                    "applied_at", "timestamp with time zone", defaultValue: "now()", comment: "When it was reached"),
            ], key: ["format"], "Formats of Weir's system tables; the greatest is the current one")
    }

    /// Which partitions of which epoch this database holds.
    var shard: TableDefinition {
        table(
            "weir_shard",
            [
                .init("shard", "integer", comment: "Number of this database, from 0"),
                .init("shards", "integer", comment: "How many databases there are"),
                .init("epoch", "text", comment: "Epoch of the log whose rows these are; never changes"),
            ], key: ["shard"],
            "The shard of this database: it holds the partitions p with p mod shards = shard")
    }

    /// The schema versions that the tables are prepared for; `tables` is `weir.v1.Schema`.
    var schemas: TableDefinition {
        table(
            "weir_schemas",
            [
                .init("ordinal", "integer", comment: "Number of the version"),
                .init("hash", "text", comment: "Hash by which devices name it"),
                .init("tables", "bytea", comment: "Its tables, weir.v1.Schema in protobuf"),
            ], key: ["ordinal"], "Schema versions that the tables are prepared for")
    }

    /// The position of each partition; `uploads` is `weir.v1.UploadPositions`.
    var partitions: TableDefinition {
        table(
            "weir_partitions",
            [
                .init("partition", "integer", comment: "Partition of the topic changes"),
                .init("ordered_offset", "bigint", comment: "Offset in ordered behind the last result written"),
                .init("next_offset", "bigint", comment: "Offset in changes of the next part"),
                .init("time_stamp", "bigint", comment: "Newest assigned time_stamp"),
                .init("schema_ordinal", "integer", comment: "Greatest schema version that a part named"),
                .init("uploads", "bytea", comment: "Newest parts seen, weir.v1.UploadPositions in protobuf"),
            ], key: ["partition"], "Position of each partition, updated with its rows in one transaction",
            fillFactor: 10
        )
    }

    /// The partition of every owner that has rows or outcomes, which never changes (I3), and what the owner has.
    var owners: TableDefinition {
        table(
            "weir_owners",
            [
                .init("sync_id", "text", comment: "Owner of rows", maximumBytes: 255),
                .init("partition", "integer", comment: "Its partition; never changes"),
                .init("rows", "bigint", defaultValue: "0", comment: "How many rows it has, without deleted ones"),
                .init(
                    "bytes", "bigint", defaultValue: "0", comment: "JSON of their values, without defaults and nulls"),
                .init("deleted_rows", "bigint", defaultValue: "0", comment: "How many deleted rows it has"),
                .init("deleted_bytes", "bigint", defaultValue: "0", comment: "JSON of their values"),
            ], key: ["sync_id"], "Partition and size of each owner that has rows or batches", fillFactor: 80)
    }

    /// The progress of each device with each owner; `outcomes` counts all it ever had.
    var devices: TableDefinition {
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

    /// The newest 16 outcomes of each device, `weir.v1.Outcome`; a new one overwrites the oldest.
    var outcomes: TableDefinition {
        table(
            "weir_outcomes",
            [
                .init("device", "bigint", comment: "The device, weir_devices.device"),
                .init("place", "integer", comment: "0 to 15"),
                .init("batch", "bigint", comment: "Number of the batch"),
                .init("outcome", "bytea", comment: "Outcome of the batch, weir.v1.Outcome in protobuf"),
            ], key: ["device", "place"], "Outcomes of the newest 16 batches of each device", fillFactor: 80)
    }

    /// The applied changes of each device that had a `changeId`.
    var appliedChanges: TableDefinition {
        table(
            "weir_applied_changes",
            [
                .init("device", "bigint", comment: "The device, weir_devices.device"),
                .init("time_stamp", "bigint", comment: "time_stamp of the result; 0 if there was nothing to delete"),
                .init("version", "bigint", comment: "Version of the result; 0 if there was nothing to delete"),
                .init("change_id", "uuid", comment: "Digest of the changeId: its number and its SHA-256"),
                .init("content", "uuid", comment: "First 16 bytes of the SHA-256 of the change"),
                .init("deleted", "boolean", comment: "Whether the row stayed deleted though values were stored"),
                .init(
                    "knowledge_id", "text", isNullable: true,
                    comment: "Device that created the row; NULL for the device itself or if there is no row",
                    maximumBytes: 255),
            ], key: ["device", "change_id"], "Applied changes that had a changeId, which are never applied again")
    }

    /// The device registry, which gateways write (``PostgresDeviceRegistry``); `knowledge` is `weir.v1.DevicePositions`.
    ///
    /// Nothing of ordering: a database whose rows are rebuilt keeps it.
    var deviceRegistry: TableDefinition {
        table(
            Self.deviceRegistryName,
            [
                .init("caller", "text", comment: "Caller whose device it is", maximumBytes: 255),
                .init("knowledge_id", "text", comment: "The device", maximumBytes: 255),
                .init("given_name", "text", isNullable: true, comment: "Name that the caller gave it"),
                .init("reported_name", "text", isNullable: true, comment: "Name that the device reports"),
                .init("platform", "text", isNullable: true, comment: "As the device reports it"),
                .init("app_version", "text", isNullable: true, comment: "As the device reports it"),
                .init("first_seen", "timestamp with time zone", comment: "First request"),
                .init("last_seen", "timestamp with time zone", comment: "Last request, about a minute late"),
                .init("last_upload", "timestamp with time zone", isNullable: true, comment: "Last batch"),
                .init(
                    "time_stamp", "bigint", isNullable: true,
                    comment: "Up to which time_stamp the device holds its caller's rows"),
                .init(
                    "knowledge", "bytea", isNullable: true,
                    comment: "The same for all owners, weir.v1.DevicePositions in protobuf"),
            ], key: ["caller", "knowledge_id"], "Devices and when they were seen; gateways write it", fillFactor: 80)
    }

    /// The positions of devices that gateways keep beside the registry (``PostgresDeviceRegistry``).
    var devicePositions: TableDefinition {
        table(
            "weir_device_positions",
            [
                .init("caller", "text", comment: "Caller whose device it is", maximumBytes: 255),
                .init("knowledge_id", "text", comment: "The device", maximumBytes: 255),
                .init("name", "text", comment: "Name of the position: face and table", maximumBytes: 255),
                .init("value", "bigint", comment: "The position, which only rises"),
            ], key: ["caller", "knowledge_id", "name"], "Positions of devices that use a face; gateways write it",
            fillFactor: 80)
    }

    /// The file of each owner (``PostgresOwnerFileStore``), which gateways write, as the following tables.
    ///
    /// Nothing of ordering, as the device registry.
    var ownerFiles: TableDefinition {
        table(
            "weir_owner_files",
            [
                .init("owner", "text", comment: "Owner of the file", maximumBytes: 255),
                .init("epoch", "text", comment: "Epoch of the log whose rows the file has"),
                .init("generation", "bigint", comment: "Of the chunks, weir_file_chunks.generation"),
                .init("bytes", "bigint", comment: "Size of the file"),
                .init("newest", "bigint", comment: "Up to which time_stamp it has the owner's rows"),
                .init("digest", "bytea", comment: "SHA-256 of the file"),
            ], key: ["owner"], "File from which new devices of an owner start; gateways write it", fillFactor: 80)
    }

    var fileUploads: TableDefinition {
        table(
            "weir_file_uploads",
            [
                .init("generation", "bigint", isIdentity: true, comment: "Of the chunks"),
                .init("owner", "text", comment: "Owner of the file", maximumBytes: 255),
                .init("device", "text", comment: "Device that uploads it", maximumBytes: 255),
                .init("bytes", "bigint", comment: "Size of the file"),
                .init("touched", "timestamp with time zone", comment: "When the last chunk came"),
                .init("removed", "boolean", comment: "Whether its chunks are being removed"),
            ], key: ["generation"], "Uploads of files that are not complete, and replaced files that are being removed",
            fillFactor: 80)
    }

    var fileChunks: TableDefinition {
        table(
            "weir_file_chunks",
            [
                .init("generation", "bigint", comment: "The file or upload"),
                .init("number", "bigint", comment: "From 0"),
                .init("content", "bytea", comment: "262144 bytes, or fewer in the last chunk"),
            ], key: ["generation", "number"], "Content of owners' files and uploads")
    }

    var fileUsage: TableDefinition {
        table(
            "weir_file_usage",
            [
                .init("id", "integer", comment: "Always 0"),
                .init("bytes", "bigint", comment: "Bytes of all files and uploads"),
            ], key: ["id"], "What the files of all owners in this database take", fillFactor: 10)
    }

    static let deviceRegistryName = "weir_device_registry"

    var all: [TableDefinition] {
        [
            migrations, shard, schemas, partitions, owners, devices, outcomes, appliedChanges, deviceRegistry,
            devicePositions, ownerFiles, fileUploads, fileChunks, fileUsage,
        ]
    }

    /// Indexes besides the primary keys.
    var indexes: [String] {
        ["CREATE INDEX weir_owners_by_partition ON \(owners.qualifiedName) (partition, sync_id)"]
    }

    private func table(
        _ name: String, _ columns: [TableDefinition.Column], key: [String], _ comment: String, fillFactor: Int = 100
    ) -> TableDefinition {
        TableDefinition(
            schema: schema, name: name, columns: columns, primaryKey: key, comment: comment, fillFactor: fillFactor)
    }
}

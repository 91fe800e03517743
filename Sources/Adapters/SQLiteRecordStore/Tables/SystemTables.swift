/// The tables of the store itself; the schema file reserves their prefix.
enum SystemTables {
    /// The `user_version` of a file that this code writes.
    ///
    /// Files of earlier formats do not have what owners have, which only a replay can count.
    static let format: Int32 = 4

    /// The `application_id` of the file: "WeRS" in ASCII.
    static let applicationID: Int32 = 0x5765_5253

    /// The epoch of the tables, one row.
    static let history = """
        CREATE TABLE weir_history (
            epoch TEXT NOT NULL
        ) STRICT
        """

    /// The schema versions that the tables are prepared for; `tables` is `weir.v1.Schema`.
    static let schemas = """
        CREATE TABLE weir_schemas (
            ordinal INTEGER PRIMARY KEY,
            hash TEXT NOT NULL,
            tables BLOB NOT NULL
        ) STRICT
        """

    /// The position of each partition; `uploads` is `weir.v1.UploadPositions`.
    static let partitions = """
        CREATE TABLE weir_partitions (
            partition INTEGER PRIMARY KEY,
            ordered_offset INTEGER NOT NULL,
            next_offset INTEGER NOT NULL,
            time_stamp INTEGER NOT NULL,
            schema_ordinal INTEGER NOT NULL,
            uploads BLOB NOT NULL
        ) STRICT
        """

    /// The partition of every owner that has rows or outcomes, which never changes (I3), and what the owner has.
    static let owners = """
        CREATE TABLE weir_owners (
            sync_id TEXT PRIMARY KEY NOT NULL,
            partition INTEGER NOT NULL,
            rows INTEGER NOT NULL DEFAULT 0,
            bytes INTEGER NOT NULL DEFAULT 0,
            deleted_rows INTEGER NOT NULL DEFAULT 0,
            deleted_bytes INTEGER NOT NULL DEFAULT 0
        ) STRICT, WITHOUT ROWID
        """

    /// The progress of each device with each owner; `outcomes` counts all it ever had.
    static let devices = """
        CREATE TABLE weir_devices (
            device INTEGER PRIMARY KEY,
            owner TEXT NOT NULL,
            caller TEXT NOT NULL,
            knowledge_id TEXT NOT NULL,
            highest_batch INTEGER NOT NULL,
            outcomes INTEGER NOT NULL,
            UNIQUE (owner, caller, knowledge_id)
        ) STRICT
        """

    /// The newest 16 outcomes of each device, `weir.v1.Outcome`; `place` is device * 16 + n % 16 for outcome n, so that a new
    /// outcome overwrites the oldest.
    static let outcomes = """
        CREATE TABLE weir_outcomes (
            place INTEGER PRIMARY KEY,
            batch INTEGER NOT NULL,
            outcome BLOB NOT NULL
        ) STRICT
        """

    /// The applied changes of each device that had a `changeId`, by its digest.
    ///
    /// `version` is 0 where there was nothing to delete, `knowledge_id` NULL there and where it is the device's own.
    static let appliedChanges = """
        CREATE TABLE weir_applied_changes (
            device INTEGER NOT NULL,
            change_id BLOB NOT NULL,
            content BLOB NOT NULL,
            time_stamp INTEGER NOT NULL,
            version INTEGER NOT NULL,
            deleted INTEGER NOT NULL,
            knowledge_id TEXT,
            PRIMARY KEY (device, change_id)
        ) STRICT, WITHOUT ROWID
        """

    static let all = [
        ("weir_history", history), ("weir_schemas", schemas), ("weir_partitions", partitions), ("weir_owners", owners),
        ("weir_devices", devices), ("weir_outcomes", outcomes), ("weir_applied_changes", appliedChanges),
    ]
}

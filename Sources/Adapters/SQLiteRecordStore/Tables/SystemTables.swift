/// The tables in which the store keeps what is no row: no schema may use names with their prefix.
enum SystemTables {
    /// The format of the file that this code writes, in its header's `user_version`.
    ///
    /// Format 1 had no `weir_history`; a file of it gets that table when it is opened.
    static let format: Int32 = 2

    /// What tells the file from those of other applications, in its header: "WeRS" in ASCII.
    static let applicationID: Int32 = 0x5765_5253

    /// The history that the tables are of, one row.
    static let history = """
        CREATE TABLE weir_history (
            epoch TEXT NOT NULL
        ) STRICT
        """

    /// The schema versions that the tables were prepared for, each with its tables as `weir.v1.Schema`.
    static let schemas = """
        CREATE TABLE weir_schemas (
            ordinal INTEGER PRIMARY KEY,
            hash TEXT NOT NULL,
            tables BLOB NOT NULL
        ) STRICT
        """

    /// Where each partition stands; `uploads` is `weir.v1.UploadPositions`.
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

    /// The partition of every owner that has rows or outcomes: an owner lives in one for ever (I3).
    static let owners = """
        CREATE TABLE weir_owners (
            sync_id TEXT PRIMARY KEY NOT NULL,
            partition INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID
        """

    /// The progress of each device with each owner.
    ///
    /// `outcomes` counts all it ever had, which says where the next one goes.
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

    /// The newest 16 outcomes of each device, `weir.v1.Outcome`: `place` is device * 16 and a number below 16, so that a
    /// new outcome takes the place of the oldest.
    static let outcomes = """
        CREATE TABLE weir_outcomes (
            place INTEGER PRIMARY KEY,
            batch INTEGER NOT NULL,
            outcome BLOB NOT NULL
        ) STRICT
        """

    /// All, with their names.
    static let all = [
        ("weir_history", history), ("weir_schemas", schemas), ("weir_partitions", partitions), ("weir_owners", owners),
        ("weir_devices", devices), ("weir_outcomes", outcomes),
    ]
}

/// The tables of a stream file.
///
/// Every record has a checksum over its columns, and the meta record has the sum of all other checksums, so that every
/// change of a meaningful byte is detected. Ids are blobs, which compare byte by byte.
///
/// - meta: one record, written by every transaction; a file without it is incomplete.
/// - uploads: for each partition of `uploads` the highest record and part whose result is complete.
/// - owners, knowledge: the heads of each owner's stream and of each device that created rows of it; for devices whose rows
/// are in time_index, a timeStamp that they begin with.
/// - stream: the newest version of each row, in the order of pulls. Pulls need no index by id: they find rows by their locators
/// (``RowLocator``). Where faces are served, ``rowIndexes`` find them by id, and the rows of one table by timeStamp.
/// - time_index: the rows of an owner's devices after the first 64 (``OwnerHeads/unindexedDevices``), by timeStamp, so that
/// a page need not begin with a search for each of them.
/// - devices, outcomes: the newest 16 outcomes of each device with each owner, in the pieces of their results.
enum FileSchema {
    /// Incremented when the tables change; a file of another format is rebuilt.
    static let format: Int32 = 5

    static let tables: [(name: String, sql: String)] = [
        (
            "meta",
            """
            CREATE TABLE meta(id INTEGER PRIMARY KEY, epoch BLOB NOT NULL, partition INTEGER NOT NULL, \
            next_offset INTEGER NOT NULL, changes_offset INTEGER NOT NULL, piece INTEGER NOT NULL, \
            is_complete INTEGER NOT NULL, time_stamp INTEGER NOT NULL, digest INTEGER NOT NULL, \
            checksum INTEGER NOT NULL) STRICT
            """
        ),
        (
            "uploads",
            """
            CREATE TABLE uploads(partition INTEGER PRIMARY KEY, upload_offset INTEGER NOT NULL, part INTEGER NOT NULL, \
            checksum INTEGER NOT NULL) STRICT
            """
        ),
        (
            "owners",
            """
            CREATE TABLE owners(owner_no INTEGER PRIMARY KEY, sync_id BLOB NOT NULL UNIQUE, head INTEGER NOT NULL, \
            checksum INTEGER NOT NULL) STRICT
            """
        ),
        (
            "knowledge",
            """
            CREATE TABLE knowledge(device_no INTEGER PRIMARY KEY, owner_no INTEGER NOT NULL, \
            knowledge_id BLOB NOT NULL, head INTEGER NOT NULL, indexed_from INTEGER NOT NULL, \
            checksum INTEGER NOT NULL, UNIQUE(owner_no, knowledge_id)) STRICT
            """
        ),
        (
            "stream",
            """
            CREATE TABLE stream(owner_no INTEGER NOT NULL, device_no INTEGER NOT NULL, time_stamp INTEGER NOT NULL, \
            table_no INTEGER NOT NULL, row_id BLOB NOT NULL, json BLOB NOT NULL, checksum INTEGER NOT NULL, \
            is_exact INTEGER NOT NULL, created_at INTEGER NOT NULL, columns INTEGER NOT NULL, \
            PRIMARY KEY(owner_no, device_no, time_stamp)) STRICT, WITHOUT ROWID
            """
        ),
        (
            "time_index",
            """
            CREATE TABLE time_index(owner_no INTEGER NOT NULL, time_stamp INTEGER NOT NULL, device_no INTEGER NOT NULL, \
            checksum INTEGER NOT NULL, PRIMARY KEY(owner_no, time_stamp)) STRICT, WITHOUT ROWID
            """
        ),
        (
            "devices",
            """
            CREATE TABLE devices(dev_no INTEGER PRIMARY KEY, owner_no INTEGER NOT NULL, caller BLOB NOT NULL, \
            knowledge_id BLOB NOT NULL, count INTEGER NOT NULL, checksum INTEGER NOT NULL, \
            UNIQUE(owner_no, caller, knowledge_id)) STRICT
            """
        ),
        (
            "outcomes",
            """
            CREATE TABLE outcomes(dev_no INTEGER NOT NULL, slot INTEGER NOT NULL, piece INTEGER NOT NULL, \
            batch INTEGER NOT NULL, is_last INTEGER NOT NULL, upload_partition INTEGER NOT NULL, \
            upload_offset INTEGER NOT NULL, upload_part INTEGER NOT NULL, bytes BLOB NOT NULL, \
            checksum INTEGER NOT NULL, PRIMARY KEY(dev_no, slot, piece)) STRICT, WITHOUT ROWID
            """
        ),
    ]

    /// Indexes of `stream` that a file has only where ``FanOutConfiguration/rowIndexes`` asks for them.
    static let rowIndexes: [(name: String, sql: String)] = [
        ("stream_by_id", "CREATE INDEX stream_by_id ON stream(owner_no, table_no, row_id)"),
        ("stream_by_table", "CREATE INDEX stream_by_table ON stream(owner_no, table_no, time_stamp)"),
    ]

    /// The tables whose checksums are in the digest.
    static let digested = ["uploads", "owners", "knowledge", "stream", "time_index", "devices", "outcomes"]
}

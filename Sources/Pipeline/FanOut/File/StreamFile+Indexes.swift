import SQLite

extension StreamFile {
    /// Creates or drops ``FileSchema/rowIndexes``, so that a file is written with those that this process reads.
    ///
    /// Takes some seconds for a gigabyte where there were none.
    func setRowIndexes(_ areWanted: Bool) throws {
        try connection.transaction(.immediate) {
            for index in FileSchema.rowIndexes {
                if areWanted {
                    try connection.execute(index.sql.replacing("CREATE INDEX", with: "CREATE INDEX IF NOT EXISTS"))
                } else {
                    try connection.execute("DROP INDEX IF EXISTS \(index.name)")
                }
            }
        }
    }
}

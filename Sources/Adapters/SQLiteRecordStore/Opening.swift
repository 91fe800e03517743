import SQLite

/// Opens a store's file and its connections; what was opened is closed again when something fails.
struct Opening {
    private let configuration: SQLiteRecordStoreConfiguration
    private let metrics: SQLiteStoreMetrics

    init(_ configuration: SQLiteRecordStoreConfiguration, _ metrics: SQLiteStoreMetrics) {
        self.configuration = configuration
        self.metrics = metrics
    }

    func run() async throws -> SQLiteRecordStore {
        let writer = try await openWriter()
        do {
            let readers = try await openReaders(count: configuration.readerThreads)
            do {
                // One: snapshots are rare and long, and must not keep look-ups waiting.
                let snapshots = try await openReaders(count: 1)
                return SQLiteRecordStore(writer: writer, readers: readers, snapshots: snapshots, metrics: metrics)
            } catch {
                try await readers.close()
                throw error
            }
        } catch {
            try await writer.close()
            throw error
        }
    }

    private func openWriter() async throws -> DatabaseWriter {
        let options = ConnectionOptions(
            cacheSize: configuration.cacheBytes, busyTimeoutMilliseconds: configuration.busyTimeoutMilliseconds)
        try await StoreFile.check(path: configuration.path, options: options)
        let writer = try await DatabaseWriter.open(
            path: configuration.path,
            write: WriteOptions(
                synchronous: .normal, pageSize: SQLiteRecordStoreConfiguration.pageSize,
                walAutocheckpoint: configuration.checkpointPages),
            options: options)
        do {
            if let bytes = configuration.maximumBytes {
                let pages = bytes / SQLiteRecordStoreConfiguration.pageSize
                try await writer.perform { connection in try connection.execute("PRAGMA max_page_count = \(pages)") }
            }
            try await writer.write { connection in try StoreFile.create(connection) }
        } catch {
            try await writer.close()
            throw error
        }
        return writer
    }

    private func openReaders(count: Int) async throws -> DatabaseReaderPool {
        try await DatabaseReaderPool.open(
            path: configuration.path, count: count,
            options: ConnectionOptions(
                cacheSize: max(configuration.cacheBytes / 4, 1024),
                busyTimeoutMilliseconds: configuration.busyTimeoutMilliseconds))
    }
}

import RecordStore
import SyncModel
import Testing

/// Opens stores for a case, and closes them at its end.
actor StoreHarness {
    private let openStore: @Sendable () async throws -> any RecordStore
    private var stores: [any RecordStore] = []

    init(_ open: @escaping @Sendable () async throws -> any RecordStore) {
        openStore = open
    }

    /// A store that is not prepared yet.
    func open() async throws -> any RecordStore {
        let store = try await openStore()
        stores.append(store)
        return store
    }

    /// A prepared store.
    func open(_ schemas: SchemaHistory) async throws -> any RecordStore {
        let store = try await open()
        try await store.prepare(schemas)
        return store
    }

    func closeAll() async {
        for store in stores { await store.close() }
        stores = []
    }
}

extension RecordStore {
    /// Prepares for the history that all cases but those about histories have.
    func prepare(_ schemas: SchemaHistory) async throws(RecordStoreError) {
        try await prepare(schemas, epoch: Sample.epoch)
    }
}

/// A partition as its worker sees it: the worker knows the position and advances it.
struct PartitionHand {
    let store: any RecordStore
    let partition: Int
    var position: StoredPosition?

    init(_ store: any RecordStore, _ partition: Int = 0) {
        self.store = store
        self.partition = partition
    }

    /// The next step, with a position that differs in every part.
    func step(
        _ rows: [OrderedRow] = [], _ outcomes: [StoredOutcome] = [], applied: [StoredAppliedChange] = [],
        usage: [SyncID: OwnerUsage] = [:], ordinal: Int = 1
    ) -> StoreStep {
        let before = position?.state ?? PartitionState()
        let timeStamp = (rows.map(\.timeStamp) + [before.timeStamp]).max() ?? .zero
        var uploads = before.uploads
        uploads[partition] = UploadProgress(offset: before.nextOffset, part: 1)
        uploads[partition + 1] = UploadProgress(offset: before.nextOffset * 2, part: 0)
        let state = PartitionState(
            nextOffset: before.nextOffset + 1, timeStamp: timeStamp, uploads: uploads, schemaOrdinal: ordinal)
        return StoreStep(
            partition: partition, expected: position,
            position: StoredPosition(state: state, orderedOffset: (position?.orderedOffset ?? 0) + 2), rows: rows,
            outcomes: outcomes, applied: applied, usage: usage)
    }

    /// Writes the next step.
    mutating func commit(
        _ rows: [OrderedRow] = [], _ outcomes: [StoredOutcome] = [], applied: [StoredAppliedChange] = [],
        usage: [SyncID: OwnerUsage] = [:], ordinal: Int = 1
    ) async throws {
        let step = step(rows, outcomes, applied: applied, usage: usage, ordinal: ordinal)
        try await store.commit([step])
        position = step.position
    }

    /// Looks rows up by their keys.
    func rows(_ keys: [RowKey], ordinal: Int = 1) async throws -> [RowKey: OrderedRow] {
        let rows = try await store.rows(keys, in: partition, schemaOrdinal: ordinal)
        let found = try await store.lookup(
            rows: keys, progress: [], applied: [], usage: [], in: partition, schemaOrdinal: ordinal,
            maximumBytes: 1 << 40)
        let isSame = Set(found.rows) == Set(rows)
        #expect(isSame && found.progress.isEmpty, "a lookup finds the same rows")
        #expect(try await store.position(of: partition) == found.position)
        let byKey = Dictionary(rows.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
        #expect(byKey.count == rows.count, "a key is answered once")
        return byKey
    }

    /// Expects the store to hold exactly these rows.
    func expect(
        _ expected: [OrderedRow], ordinal: Int = 1, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let found = try await rows(expected.map(\.key), ordinal: ordinal)
        #expect(found.count == expected.count, sourceLocation: sourceLocation)
        for row in expected {
            // Compared outside the expectation, which would print values of any size.
            let isSame = found[row.key] == row
            #expect(isSame, "table \(row.key.table), id \(row.key.id)", sourceLocation: sourceLocation)
        }
    }

    /// The progress of one device.
    func progress(_ key: DeviceKey, batch: Int64) async throws -> DeviceProgress {
        let requests = [ProgressRequest(key: key, batch: batch)]
        let answers = try await store.progress(requests, in: partition)
        let found = try await store.lookup(
            rows: [], progress: requests, applied: [], usage: [], in: partition, schemaOrdinal: 1, maximumBytes: 1)
        #expect(found == StepLookup(rows: [], progress: answers, position: try await store.position(of: partition)))
        return try #require(answers.first)
    }
}

/// Expects a call to fail with a code.
func expectError(
    _ code: RecordStoreError.Code, isRetriable: Bool = false, sourceLocation: SourceLocation = #_sourceLocation,
    _ call: () async throws -> Void
) async {
    do {
        try await call()
        Issue.record("the call succeeded", sourceLocation: sourceLocation)
    } catch let error as RecordStoreError {
        #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
        #expect(error.isRetriable == isRetriable, sourceLocation: sourceLocation)
        #expect(!error.message.isEmpty, sourceLocation: sourceLocation)
    } catch {
        Issue.record(error, sourceLocation: sourceLocation)
    }
}

import RecordStore

/// The behaviour of every store, as cases that use only the port.
///
/// A test target of an adapter runs them all:
///
///     @Test(arguments: RecordStoreConformance.cases)
///     func conforms(_ test: ConformanceCase) async throws {
///         // … make an empty place …
///         try await test.run { try await MyStore.open(place) }
///     }
package enum RecordStoreConformance {
    package static let cases: [ConformanceCase] =
        valueCases + keyCases + commitCases + progressCases + appliedChangeCases + evolutionCases + snapshotCases
        + preparationCases
}

/// One behaviour that a store must have.
package struct ConformanceCase: Sendable, CustomStringConvertible {
    package let description: String
    private let body: @Sendable (StoreHarness) async throws -> Void

    init(_ description: String, _ body: @escaping @Sendable (StoreHarness) async throws -> Void) {
        self.description = description
        self.body = body
    }

    /// Runs the case.
    ///
    /// - Parameter open: opens a store; the first time on an empty place, later on the same place, also while an
    ///   earlier one is still open.
    package func run(_ open: @escaping @Sendable () async throws -> any RecordStore) async throws {
        let harness = StoreHarness(open)
        let outcome: Result<Void, any Error>
        do {
            try await body(harness)
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        await harness.closeAll()
        try outcome.get()
    }
}

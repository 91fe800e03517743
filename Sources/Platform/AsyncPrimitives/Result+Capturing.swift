extension Result where Failure == any Error {
    /// The result of an asynchronous body, for code that must continue after success and failure alike.
    package static func capturing(_ body: () async throws -> Success) async -> Result where Success: Sendable {
        do {
            return .success(try await body())
        } catch {
            return .failure(error)
        }
    }
}

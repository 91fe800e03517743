import Foundation

/// Makes an empty folder for a closure and removes it afterwards.
func withTemporaryFolder(_ body: (String) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("weir-ordering-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let outcome: Result<Void, any Error>
    do {
        outcome = .success(try await body(folder.path))
    } catch {
        outcome = .failure(error)
    }
    try FileManager.default.removeItem(at: folder)
    try outcome.get()
}

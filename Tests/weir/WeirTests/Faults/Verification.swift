import Testing

/// `weir verify` on the files of a stopped server.
enum Verification {
    /// Expects no difference between the log and what was derived from it.
    static func expectEqual(_ folder: TestFolder) async throws {
        let run = try await CommandRun.run("verify", "--data", folder.path + "/data", in: folder)
        #expect(run.code == 0, "\(run.output)\(run.errors)")
    }
}

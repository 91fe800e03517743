import Testing

/// The program's own check of what a stopped server left behind: everything is what its log makes it.
enum Verification {
    /// Expects `weir verify` to find no difference.
    static func expectEqual(_ folder: TestFolder) async throws {
        let run = try await CommandRun.run("verify", "--data", folder.path + "/data", in: folder)
        #expect(run.code == 0, "\(run.output)\(run.errors)")
    }
}

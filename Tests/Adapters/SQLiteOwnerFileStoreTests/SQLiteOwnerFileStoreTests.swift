import Foundation
import OwnerFileStore
import OwnerFileStoreConformance
import SQLiteOwnerFileStore
import SyncModel
import Testing

@Suite struct SQLiteOwnerFileStoreTests {
    @Test(arguments: OwnerFileStoreConformance.cases)
    func conforms(_ test: ConformanceCase) async throws {
        try await inFolder { folder in try await test.run(open(folder)) }
    }

    @Test func aRestartKeepsFilesAndRemovesUploads() async throws {
        try await inFolder { folder in
            let first = try await open(folder)
            let content = [UInt8](repeating: 7, count: 300_000)
            let file = try await OwnerFileStoreConformance.put(content, "phone", 5, first)
            let device = Device(caller: file.owner, knowledgeID: KnowledgeID(unchecked: "phone"))
            let upload = try await first.begin(device, byteCount: OwnerFileStoreConformance.limits.totalBytes / 2)
            await first.close()
            let second = try await open(folder)
            #expect(try await second.file(of: file.owner) == file)
            #expect(try await OwnerFileStoreConformance.read(file, second) == content)
            let error = await #expect(throws: OwnerFileError.self) {
                try await second.append([1], number: 0, to: upload)
            }
            #expect(error?.code == .gone)
            let other = Device(caller: SyncID(unchecked: "ben"), knowledgeID: KnowledgeID(unchecked: "phone"))
            _ = try await second.begin(other, byteCount: OwnerFileStoreConformance.limits.totalBytes - 300_000)
            await second.close()
        }
    }

    @Test func aFileOfAnotherHistoryIsNoneAndIsReplacedByAnOlderOne() async throws {
        try await inFolder { folder in
            let first = try await open(folder)
            _ = try await OwnerFileStoreConformance.put([1], "phone", 5, first)
            await first.close()
            let second = try await open(folder, epoch: "e2")
            #expect(try await second.file(of: OwnerFileStoreConformance.ann) == nil)
            let file = try await OwnerFileStoreConformance.put([2], "phone", 4, second)
            #expect(try await second.file(of: OwnerFileStoreConformance.ann) == file)
            await second.close()
        }
    }

    @Test func refusesAFileOfAnotherApplicationAndLeavesItAsItIs() async throws {
        try await inFolder { folder in
            let path = folder.appending(path: "files.db")
            try Data("this is no database, but long enough to be read as one".utf8).write(to: path)
            let before = try Data(contentsOf: path)
            await #expect(throws: OwnerFileError.self) { try await open(folder) }
            #expect(try Data(contentsOf: path) == before)
        }
    }

    private func open(_ folder: URL, epoch: String = "e1") async throws -> SQLiteOwnerFileStore {
        try await SQLiteOwnerFileStore.open(
            path: folder.appending(path: "files.db").path, epoch: epoch, limits: OwnerFileStoreConformance.limits)
    }

    private func inFolder(_ body: (URL) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "weir-files-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let outcome: Result<Void, any Error>
        do {
            try await body(folder)
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        try FileManager.default.removeItem(at: folder)
        try outcome.get()
    }
}

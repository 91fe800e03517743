import Foundation
import SQLite
import SyncModel
import Synchronization
import Testing
import ThreadExecutor

/// A stage makes no progress: uploads are accepted up to a bound, and rejected until the stage continues.
@Suite(.timeLimit(.minutes(5))) struct BacklogTests {
    @Test func uploadsAreRejectedWhileTheTablesCannotBeWritten() async throws {
        let folder = try TestFolder()
        let weir = try await TestServer.start(
            in: folder,
            settings: [
                // The overlay holds a step or two, then ordering waits for the tables.
                "gateway.max-lag": "300ms", "ordering.overlay-bytes": "1KiB", "ordering.retry-delay": "1ms",
            ])
        var uploader = Uploader(weir)
        try await uploader.uploadUntilAccepted()
        try await uploader.expectEverything()

        let path = folder.path + "/data/tables.db"
        let thread = try DedicatedThread(name: "lock")
        let lock = try await thread.run { try Lock(path) }
        let refusal = try await uploader.uploadUntilRejected()
        #expect(refusal.status == 503)
        #expect(try refusal.json()["code"].string == "overloaded")
        #expect(refusal.headers["retry-after"] == "5")
        #expect(await weir.hasLogged("Uploads of a partition are refused"))
        // Reads are still served.
        let pull = try await uploader.client.post("/v1/pull", ["knowledgeId": "k2"])
        #expect(pull.status == 200)
        #expect(try pull.json()["changes"].array.count == 1)

        try await thread.run { try lock.release() }
        await thread.close()
        // One upload a second is accepted even before; only the log tells when all are.
        let isOpen = Mutex(false)
        let reading = Task {
            defer { isOpen.withLock { $0 = true } }
            return await weir.hasLogged("Uploads of a partition are accepted again")
        }
        repeat { try await uploader.uploadUntilAccepted() } while !isOpen.withLock { $0 }
        #expect(await reading.value)
        try await uploader.expectEverything()
        #expect(await weir.stop() == 0)
    }

    /// The partition of another owner is paused by a record that cannot be read; the caller's own continues.
    @Test func uploadsForAnotherOwnerFillItsPartitionUpToTheCallersWindow() async throws {
        let folder = try TestFolder()
        let partitions = ["abc", "def", "stu"].map { Partitioning(count: 2).partition(of: SyncID(unchecked: $0)) }
        #expect(partitions[0] != partitions[1] && partitions[0] == partitions[2])
        let first = try await TestServer.start(in: folder)
        #expect(await first.stop() == 0)
        try await InvalidRecords.append([InvalidRecords.part(of: "def", partitions: 2)], to: folder.path + "/data")

        let weir = try await TestServer.start(in: folder)
        let client = DeviceClient(port: weir.port, syncID: "abc", links: "def:write")
        let change = TestDevice.change("r", ["name": "Ada"]).with("syncId", "def")
        func upload() async throws -> Int {
            try await client.post("/v1/upload", ["knowledgeId": "k1", "changes": JSON([change.value])]).status
        }
        #expect(try await upload() == 202)
        // Once the next has its outcome, the first waits for the other partition alone.
        var own = TestDevice(weir, syncID: "abc", knowledgeID: "k2")
        #expect(TestDevice.verdicts(try await own.sync([TestDevice.change("r", ["name": "Ada"])])) == ["applied"])
        var count = 1
        var status = 202
        while count < 100, status == 202 {
            status = try await upload()
            if status == 202 { count += 1 }
        }
        #expect(count == 64 && status == 429, "\(count), \(status)")
        // Others are served.
        var other = TestDevice(weir, syncID: "stu", knowledgeID: "k1")
        #expect(TestDevice.verdicts(try await other.sync([TestDevice.change("r", ["name": "Ada"])])) == ["applied"])
        #expect(await weir.stop() == 0)
    }
}

/// Another program's transaction, which blocks all other writers.
// Unchecked: used on one thread.
private final class Lock: @unchecked Sendable {
    private let connection: Connection

    init(_ path: String) throws {
        connection = try Connection(path: path, access: .readWriteCreate(WriteOptions()))
        try connection.execute("BEGIN IMMEDIATE")
    }

    func release() throws {
        try connection.execute("ROLLBACK")
        try connection.close()
    }
}

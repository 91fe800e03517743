import AsyncPrimitives
import ChangeLog
import Foundation
import SQLiteChangeLog
import SyncModel
import SyncWire
import Testing

/// Records that no worker can process, and `weir skip`.
enum InvalidRecords {
    /// A batch of a schema version that nobody registered.
    static func upload(of caller: String, partitions: Int) -> NewRecord {
        let owner = SyncID(unchecked: caller)
        let batch = ChangeBatch(
            epoch: "", schema: String(repeating: "0", count: 32),
            device: Device(caller: owner, knowledgeID: KnowledgeID(unchecked: "k9")), batch: 1,
            grants: [Grant(owner: owner, access: .write)],
            changes: Array(#"[{"table": "person", "id": "lost", "values": {"name": "Ada"}}]"#.utf8))
        let partition = Partitioning(count: partitions).partition(of: owner)
        return NewRecord(to: TopicPartition(.uploads, partition), key: Array(caller.utf8), value: batch.encode())
    }

    /// No part of a batch, in the owner's partition.
    static func part(of owner: String, partitions: Int) -> NewRecord {
        let partition = Partitioning(count: partitions).partition(of: SyncID(unchecked: owner))
        return NewRecord(to: TopicPartition(.changes, partition), key: Array(owner.utf8), value: [0xFF, 0xFF, 0xFF])
    }

    /// Appends to the log of a stopped process.
    static func append(_ records: [NewRecord], to data: String) async throws {
        var configuration = SQLiteChangeLogConfiguration()
        configuration.path = data + "/log.db"
        let log = try await SQLiteChangeLog(configuration)
        let result = await Result.capturing {
            let producer = try await log.producer()
            try await producer.append(records)
            await producer.close()
        }
        try await log.close()
        try result.get()
    }
}

/// `weir skip` on a data folder.
@Suite(.timeLimit(.minutes(5))) struct SkipTests {
    private let folder: TestFolder
    private let partition = "\(Partitioning(count: 2).partition(of: SyncID(unchecked: "abc")))"

    init() throws { folder = try TestFolder() }

    private var data: String { folder.path + "/data" }

    private func skip(_ arguments: String...) async throws -> CommandRun {
        try await CommandRun.run(["skip"] + arguments + ["--data", data], in: folder)
    }

    /// Writes some rows of `abc` and stops the process.
    private func fill() async throws -> TestDevice {
        let weir = try await TestServer.start(in: folder)
        var device = TestDevice(weir, syncID: "abc", knowledgeID: "k1")
        for round in 0..<3 { _ = try await device.sync([TestDevice.change("p\(round)", ["name": "Grace"])]) }
        #expect(await weir.stop() == 0)
        return device
    }

    @Test func aFolderGoesOnBehindRecordsThatAreLeftOutAndVerifiesAsEqual() async throws {
        var device = try await fill()
        try await InvalidRecords.append(
            [InvalidRecords.upload(of: "abc", partitions: 2), InvalidRecords.part(of: "abc", partitions: 2)], to: data)
        let upload = try await skip("uploads", partition, "3", "--why", "edge 7 was reverted")
        #expect(upload.code == 0, "\(upload.errors)")
        #expect(upload.output.contains("uploads[\(partition)] offset 3: schema version"), "\(upload.output)")
        let part = try await skip("changes", partition, "3", "--why", "written by hand")
        #expect(part.code == 0, "\(part.errors)")
        #expect(part.output.contains("changes[\(partition)] offset 3: the record cannot be read"), "\(part.output)")
        // The first decision counts.
        let again = try await skip("changes", partition, "3", "--why", "again")
        #expect(again.code == 0 && again.output.hasPrefix("It is left out already: "), "\(again.output)")

        let list = try await skip("list")
        let lines = list.output.split(separator: "\n")
        #expect(list.code == 0 && lines.count == 2, "\(list.output)")
        #expect(lines[0].wholeMatch(of: /uploads\[\d\] offset 3, since \S+Z: edge 7 was reverted/) != nil)
        #expect(lines[1].wholeMatch(of: /changes\[\d\] offset 3, since \S+Z: written by hand/) != nil)

        let weir = try await TestServer.start(in: folder)
        device.move(to: weir.port)
        #expect(TestDevice.verdicts(try await device.sync([TestDevice.change("p9", ["name": "Ada"])])) == ["applied"])
        // Its device sends the batch again, which has no outcome.
        var other = TestDevice(weir, syncID: "abc", knowledgeID: "k9")
        #expect(TestDevice.verdicts(try await other.sync([TestDevice.change("lost", ["name": "Ada"])])) == ["applied"])
        #expect(await weir.stop() == 0)
        let verified = try await CommandRun.run("verify", "--data", data, in: folder)
        #expect(verified.code == 0, "\(verified.output)\(verified.errors)")
        let replayed = try await CommandRun.run("replay", "--replace", "--data", data, in: folder)
        #expect(replayed.code == 0, "\(replayed.output)\(replayed.errors)")
    }

    @Test func whatCanBeProcessedIsNotLeftOut() async throws {
        _ = try await fill()
        for (topic, offset, reason) in [
            ("uploads", "0", "ingest has passed uploads[\(partition)] offset 0: it is at offset 3"),
            ("changes", "2", "changes[\(partition)] offset 2 can be processed"),
            ("uploads", "3", "uploads[\(partition)] has no record at offset 3: it holds 0 to 3"),
            ("changes", "99", "changes[\(partition)] has no record at offset 99"),
        ] {
            let run = try await skip(topic, partition, offset, "--why", "test")
            #expect(run.code == 1 && run.output.isEmpty, "\(topic) \(offset)")
            #expect(run.errors.hasPrefix("weir skip \(topic): \(reason)"), "\(run.errors)")
        }
        let beyond = try await skip("changes", "2", "0", "--why", "test")
        #expect(beyond.code == 1 && beyond.errors.contains("there is no partition 2: the topics have 2"))
        #expect(try await skip("list").output == "No record is left out.\n")
    }

    @Test(arguments: [
        (["uploads", "0", "0"], "--why says in 1 to 1000 bytes why"),
        (["uploads", "0", "0", "--why", ""], "--why says in 1 to 1000 bytes why"),
        (["changes", "x", "0", "--why", "test"], "PARTITION and OFFSET are numbers from 0"),
        (["changes", "0", "0x3", "--why", "test"], "PARTITION and OFFSET are numbers from 0"),
        (["changes", "0", "--why", "test"], "OFFSET is missing"),
        (["ordered", "0", "0", "--why", "test"], "\"ordered\""),
    ]) func aWrongCallIsExplained(arguments: [String], explanation: String) async throws {
        let run = try await CommandRun.run(["skip"] + arguments, in: folder)
        #expect(run.code == 64 && run.output.isEmpty)
        #expect(run.errors.contains(explanation), "\(run.errors)")
    }

    @Test func aFolderThatIsInUseIsRefused() async throws {
        let weir = try await TestServer.start(in: folder)
        let run = try await skip("list")
        #expect(run.code == 1 && run.errors.contains("a process that uses it must be stopped first"), "\(run.errors)")
        #expect(await weir.stop() == 0)
    }
}

/// `weir skip` beside running processes.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: WeirCluster.skipReason == nil, "\(WeirCluster.skipReason ?? "")"))
struct ClusterSkipTests {
    @Test func runningProcessesGoOnBehindRecordsThatAreLeftOut() async throws {
        let cluster = try await WeirCluster.make(.init(partitions: 2))
        let weir = try await cluster.start(.run, named: "all")
        var device = TestDevice(port: weir.port, syncID: "abc", knowledgeID: "k1")
        func write(_ id: String) async throws {
            #expect(TestDevice.verdicts(try await device.sync([TestDevice.change(id, ["name": "Ada"])])) == ["applied"])
        }
        try await write("p1")
        let upload = InvalidRecords.upload(of: "abc", partitions: 2)
        let partition = "\(upload.destination.partition)"
        try await TopicRecords.append([upload], to: cluster)
        #expect(await weir.process.hasLogged("The partition is paused until its schema version is known"))
        try await cluster.command("skip", "uploads", partition, "1", "--why", "edge 7 was reverted")
        #expect(await weir.process.hasLogged("A record is left out, as an operator decided"))
        try await write("p2")

        try await TopicRecords.append([InvalidRecords.part(of: "abc", partitions: 2)], to: cluster)
        #expect(await weir.process.hasLogged("The partition is paused and tried again"))
        try await cluster.command("skip", "changes", partition, "2", "--why", "written by hand")
        #expect(await weir.process.hasLogged("The partition resumes: its next record was processed"))
        try await write("p3")

        let list = try await CommandRun.run("skip", "list", "--config", "weir.yaml", in: cluster.folder)
        #expect(list.output.split(separator: "\n").count == 2, "\(list.output)\(list.errors)")
        await weir.stop()
        let verified = try await cluster.verify()
        #expect(verified.code == 0, "\(verified.output)\(verified.errors)")
    }
}

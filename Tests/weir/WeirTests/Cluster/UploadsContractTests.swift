import Foundation
import Testing

/// Programs of others on the topics: an edge that writes `uploads` as docs/kafka.md describes, and tools that read all topics.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: UploadsContractHarness.skipReason == nil, "\(UploadsContractHarness.skipReason ?? "")"))
struct UploadsContractTests {
    /// The program in docs/kafka.md, with the classes that protoc generates.
    @Test func aProducerWrittenFromTheDocumentsIsAppliedOnceAndToolsReadEveryTopic() async throws {
        let cluster = try await WeirCluster.make()
        let weir = try await cluster.start(.run, named: "weir")
        let harness = UploadsContractHarness(cluster)
        let producer = try await harness.makeProducer()

        // The second owner has another partition, and a name beyond ASCII.
        let owners = ["ada", "zoë"]
        for owner in owners {
            let first = #"[{"table": "person", "id": "p1", "values": {"name": "Grace"}}]"#
            // Sent twice, as after a timeout; the next batch in the partition is ordered after both.
            for _ in 0..<2 { try await producer.upload(owner, "phone", batch: 1, first) }
            let second = #"[{"table": "person", "id": "p2", "values": {"name": "Alan"}}, {"table": "none", "id": "x"}]"#
            try await producer.upload(owner, "phone", batch: 2, second)
            try await cluster.database.untilRow("SELECT 1 FROM person WHERE sync_id = '\(owner)' AND id = 'p2'")
            let rows = try await cluster.database.query(
                "SELECT id, name, knowledge_id, version::text, deleted::text FROM person WHERE sync_id = '\(owner)' "
                    + "ORDER BY id")
            #expect(
                rows == [["p1", "Grace", "phone", "1", "false"], ["p2", "Alan", "phone", "1", "false"]], "\(owner)")
            // Another device pulls what the first one wrote.
            var laptop = TestDevice(port: weir.port, syncID: owner, knowledgeID: "laptop")
            // The stream may be behind the tables.
            repeat { try await laptop.drain() } while laptop.rows.count < rows.count
            #expect(laptop.rows.count == 2)
        }
        // An invalid record changes nothing, and the partition continues.
        try await harness.produce(Data([0xFF, 0xFF, 0xFF]), to: "uploads", partition: 0, key: "nobody")
        // Nor does a batch in another partition than its caller's; its number stays unused.
        func named(_ name: String) -> String { #"[{"table": "person", "id": "p3", "values": {"name": "\#(name)"}}]"# }
        try await producer.upload("ada", "phone", batch: 3, named("misplaced"), isMisplaced: true)
        let deadLetters = try await harness.read("dead-letters", count: owners.count + 2)
        #expect(deadLetters.count == owners.count + 2)
        try await producer.upload("ada", "phone", batch: 3, named("Edsger"))
        try await cluster.database.untilRow("SELECT 1 FROM person WHERE sync_id = 'ada' AND id = 'p3'")
        let rows = try await cluster.database.query("SELECT name, version::text FROM person WHERE id = 'p3'")
        #expect(rows == [["Edsger", "1"]])

        try await expectTools(harness, owners)
        await weir.stop()
    }

    /// kcat and Kafka's own tools see the same records, with keys and the log's own time.
    private func expectTools(_ harness: UploadsContractHarness, _ owners: [String]) async throws {
        let counts = try await harness.counts()
        #expect(counts["uploads"] == 9)
        // A part for each batch and each repeat; the invalid and the misplaced record have none.
        #expect(counts["changes"] == 7)
        #expect(counts["ordered"] == 7)
        #expect(counts["dead-letters"] == 4)
        #expect(counts["control"] == 2)
        // How many records an owner has in a partition, of any topic.
        var partitions: [String: [Int: Int]] = [:]
        for (topic, count) in counts {
            let records = try await harness.read(topic, count: count)
            #expect(records.count == count, "\(topic)")
            #expect(records.allSatisfy { $0.timeType == "logappend" }, "\(topic)")
            let keys = Set(records.map(\.key))
            switch topic {
            case "control": #expect(Set(keys.map { $0.prefix { $0 != "/" } }) == ["history", "schema"])
            case "uploads", "dead-letters": #expect(keys == Set(owners + ["nobody"]), "\(topic)")
            default: #expect(keys == Set(owners), "\(topic)")
            }
            for record in records { partitions[record.key, default: [:]][record.partition, default: 0] += 1 }
        }
        // The edge chose the partitions that Weir would, except for the misplaced record and its dead letter.
        #expect(partitions["zoë"]?.count == 1, "\(partitions)")
        #expect(partitions["ada"]?.count == 2 && partitions["ada"]?.values.min() == 2, "\(partitions)")
        let lines = try await harness.consoleConsumer(count: counts.values.reduce(0, +))
        #expect(lines.count == counts.values.reduce(0, +))
        #expect(lines.allSatisfy { $0.hasPrefix("LogAppendTime:") }, "\(lines.first ?? "")")
        let keys = Set(lines.map { $0.split(separator: "\t").last.map(String.init) ?? "" })
        #expect(keys.isSuperset(of: owners))
    }
}

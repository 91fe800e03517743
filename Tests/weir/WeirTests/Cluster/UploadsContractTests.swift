import Foundation
import Testing

/// What others do with the topics: an edge that writes `uploads` by what docs/kafka.md says, and tools that read all topics.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: UploadsContractHarness.skipReason == nil, "\(UploadsContractHarness.skipReason ?? "")"))
struct UploadsContractTests {
    /// The program that docs/kafka.md shows, over the classes that protoc makes of the contract.
    @Test func aProducerWrittenFromTheDocumentsReachesTheTablesOnceAndToolsReadEveryTopic() async throws {
        let cluster = try await WeirCluster.make()
        let weir = try await cluster.start(.run, named: "weir")
        let place = UploadsContractHarness(cluster)
        let producer = try await place.makeProducer()

        // The second has another partition, most of all a name that is no ASCII.
        let owners = ["ada", "zoë"]
        for owner in owners {
            let first = #"[{"table": "person", "id": "p1", "values": {"name": "Grace"}}]"#
            // Sent twice, as after a doubtful write; what is behind it in the partition has been ordered after both.
            for _ in 0..<2 { try await producer.upload(owner, "phone", batch: 1, first) }
            let second = #"[{"table": "person", "id": "p2", "values": {"name": "Alan"}}, {"table": "none", "id": "x"}]"#
            try await producer.upload(owner, "phone", batch: 2, second)
            try await cluster.database.untilRow("SELECT 1 FROM person WHERE sync_id = '\(owner)' AND id = 'p2'")
            let rows = try await cluster.database.query(
                "SELECT id, name, knowledge_id, version::text, deleted::text FROM person WHERE sync_id = '\(owner)' "
                    + "ORDER BY id")
            #expect(
                rows == [["p1", "Grace", "phone", "1", "false"], ["p2", "Alan", "phone", "1", "false"]], "\(owner)")
            // The device asks a gateway what became of its batch, and another one pulls what it wrote.
            var laptop = TestDevice(port: weir.port, syncID: owner, knowledgeID: "laptop")
            // The stream may come behind the tables.
            repeat { try await laptop.drain() } while laptop.rows.count < rows.count
            #expect(laptop.rows.count == 2)
        }
        // Bytes that are no message change nothing, and the partition goes on.
        try await place.produce(Data([0xFF, 0xFF, 0xFF]), to: "uploads", partition: 0, key: "nobody")
        // Nor does a batch in another partition than its caller's, whose number stays free.
        func named(_ name: String) -> String { #"[{"table": "person", "id": "p3", "values": {"name": "\#(name)"}}]"# }
        try await producer.upload("ada", "phone", batch: 3, named("misplaced"), isMisplaced: true)
        let letters = try await place.read("dead-letters", count: owners.count + 2)
        #expect(letters.count == owners.count + 2)
        try await producer.upload("ada", "phone", batch: 3, named("Edsger"))
        try await cluster.database.untilRow("SELECT 1 FROM person WHERE sync_id = 'ada' AND id = 'p3'")
        let rows = try await cluster.database.query("SELECT name, version::text FROM person WHERE id = 'p3'")
        #expect(rows == [["Edsger", "1"]])

        try await expectTools(place, owners)
        await weir.stop()
    }

    /// kcat and Kafka's own tools see the same records, with keys and the log's own time.
    private func expectTools(_ place: UploadsContractHarness, _ owners: [String]) async throws {
        let counts = try await place.counts()
        #expect(counts["uploads"] == 9)
        // A part for each batch, repeats included; what was no batch, or in the wrong place, has none.
        #expect(counts["changes"] == 7)
        #expect(counts["ordered"] == 7)
        #expect(counts["dead-letters"] == 4)
        #expect(counts["control"] == 2)
        // How many records an owner has in a partition, of any topic.
        var places: [String: [Int: Int]] = [:]
        for (topic, count) in counts {
            let records = try await place.read(topic, count: count)
            #expect(records.count == count, "\(topic)")
            #expect(records.allSatisfy { $0.timeType == "logappend" }, "\(topic)")
            let keys = Set(records.map(\.key))
            switch topic {
            case "control": #expect(Set(keys.map { $0.prefix { $0 != "/" } }) == ["history", "schema"])
            case "uploads", "dead-letters": #expect(keys == Set(owners + ["nobody"]), "\(topic)")
            default: #expect(keys == Set(owners), "\(topic)")
            }
            for record in records { places[record.key, default: [:]][record.partition, default: 0] += 1 }
        }
        // The edge put each owner where Weir itself puts it, but for the one record, whose letter is where it is.
        #expect(places["zoë"]?.count == 1, "\(places)")
        #expect(places["ada"]?.count == 2 && places["ada"]?.values.min() == 2, "\(places)")
        let lines = try await place.consoleConsumer(count: counts.values.reduce(0, +))
        #expect(lines.count == counts.values.reduce(0, +))
        #expect(lines.allSatisfy { $0.hasPrefix("LogAppendTime:") }, "\(lines.first ?? "")")
        let keys = Set(lines.map { $0.split(separator: "\t").last.map(String.init) ?? "" })
        #expect(keys.isSuperset(of: owners))
    }
}

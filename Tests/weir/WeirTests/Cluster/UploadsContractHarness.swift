import Foundation
import KafkaServer
import Testing

/// Runs kcat, Kafka's tools and a Python producer on the topics of a cluster.
struct UploadsContractHarness: Sendable {
    /// Why the tests are skipped; `nil` where everything is at hand.
    static let skipReason: String? = {
        if let reason = WeirCluster.skipReason ?? WeirCluster.skipReasonForOwnBrokers { return reason }
        for program in ["kcat", "protoc"] where !CommandRun.isInstalled(program) {
            return "\(program) is not installed here"
        }
        return nil
    }()

    let cluster: WeirCluster

    private var folder: TestFolder { cluster.folder }
    private var servers: String { cluster.servers }
    private var prefix: String { cluster.prefix }

    init(_ cluster: WeirCluster) { self.cluster = cluster }

    // MARK: The producer of the documents

    /// The program in docs/kafka.md, beside the classes that protoc generates.
    struct Producer: Sendable {
        let harness: UploadsContractHarness
        let python: String

        /// Writes a batch and returns when the brokers have it.
        ///
        /// - Parameter isMisplaced: whether it goes into another partition than the contract says.
        func upload(
            _ caller: String, _ device: String, batch: Int, _ changes: String, isMisplaced: Bool = false
        ) async throws {
            let program = isMisplaced ? "misplace.py" : "upload.py"
            _ = try await harness.tool(
                [python, program, harness.servers, harness.prefix, caller, device, "\(batch)", changes])
        }
    }

    func makeProducer() async throws -> Producer {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let document = try String(contentsOf: root.appending(path: "docs/kafka.md"), encoding: .utf8)
        let code = String(try #require(document.firstMatch(of: /```python\n((?s).*?)```/)).output.1)
        try folder.write(code, to: "upload.py")
        // The same program with a wrong partitioner.
        let right = "% history.partitions"
        try #require(code.ranges(of: right).count == 1)
        try folder.write(
            code.replacing(right, with: right + " + 1) % history.partitions").replacing(
                "partition = (", with: "partition = (("), to: "misplace.py")
        _ = try await tool(
            [
                "protoc", "-I", root.appending(path: "Sources/Model/SyncWire/Protos").path, "--python_out=.",
                "control.proto",
                "uploads.proto", "values.proto",
            ])
        // The Python that has protobuf: the system's, where its package puts it, else the one on the path.
        for python in ["/usr/bin/python3", "python3"] {
            if try await CommandRun.tool([python, "-c", "import google.protobuf"], in: folder).code == 0 {
                return Producer(harness: self, python: python)
            }
        }
        throw StartFailure(
            description: "no python3 has google.protobuf; install python3-protobuf (apt) or protobuf (pip)")
    }

    // MARK: Tools

    /// Runs a tool, which must succeed; its standard output.
    fileprivate func tool(_ arguments: [String]) async throws -> String {
        let run = try await CommandRun.tool(arguments, in: folder)
        guard run.code == 0 else {
            throw StartFailure(description: "\(arguments.joined(separator: " ")): \(run.errors)")
        }
        return run.output
    }

    /// A record as kcat shows it.
    struct Record: Sendable {
        let partition: Int
        let key: String
        let timeType: String
    }

    /// Writes bytes as one record.
    func produce(_ value: Data, to topic: String, partition: Int, key: String) async throws {
        try value.write(to: URL(fileURLWithPath: folder.path + "/value"))
        _ = try await tool(
            ["kcat", "-P", "-q", "-b", servers, "-t", prefix + topic, "-p", "\(partition)", "-k", key, "value"])
    }

    /// Reads as many records of a topic with kcat, waiting for them.
    func read(_ topic: String, count: Int) async throws -> [Record] {
        let output = try await tool(
            ["kcat", "-C", "-q", "-J", "-b", servers, "-t", prefix + topic, "-o", "beginning", "-c", "\(count)"])
        return try output.split(separator: "\n").map { line in
            let match = try #require(
                line.firstMatch(of: /"partition":(\d+).*?"tstype":"([a-z]+)".*?"key":"(.*?)","payload"/), "\(line)")
            return Record(
                partition: try #require(Int(match.1)), key: String(match.3), timeType: String(match.2))
        }
    }

    /// How many records each topic has, by Kafka's own tool.
    func counts() async throws -> [String: Int] {
        let output = try await tool(
            [home("kafka-get-offsets.sh"), "--bootstrap-server", servers, "--topic", prefix + ".*"])
        var counts: [String: Int] = [:]
        for line in output.split(separator: "\n") {
            let parts = line.split(separator: ":")
            guard parts.count == 3, parts[0].hasPrefix(prefix), let end = Int(parts[2]) else { continue }
            counts[String(parts[0].dropFirst(prefix.count)), default: 0] += end
        }
        return counts
    }

    /// So many records of all topics, as Kafka's own tool prints them: the kind and time of each, and its key.
    func consoleConsumer(count: Int) async throws -> [Substring] {
        let output = try await tool(
            [
                home("kafka-console-consumer.sh"), "--bootstrap-server", servers, "--include", prefix + ".*",
                "--from-beginning", "--max-messages", "\(count)", "--property", "print.timestamp=true", "--property",
                "print.key=true", "--property", "print.value=false",
            ])
        return output.split(separator: "\n").filter { $0.contains("Time:") }
    }

    private func home(_ script: String) -> String { (KafkaServer.home ?? "") + "/bin/" + script }
}

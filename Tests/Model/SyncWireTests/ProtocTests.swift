import Foundation
import SyncModel
import SyncWire
import Testing

/// Compares the code with the contract's files, as protoc and its Python classes understand them.
@Suite struct ProtocTests {
    @Test func pythonReadsWhatSwiftWritesAndSwiftReadsWhatPythonWrites() async throws {
        let answers = try await Command.withTemporaryFolder { try await convert(Sample.all, in: $0) }
        try #require(answers.map(\.name) == Sample.all.map(\.name))
        for (sample, answer) in zip(Sample.all, answers) {
            #expect(answer.differences.isEmpty, "\(sample)")
            #expect([UInt8](answer.bytes) == sample.bytes, "\(sample): bytes")
            #expect(try sample.matches([UInt8](answer.bytes)), "\(sample): value")
            #expect(answer.bytesWithUnknownFields.count > answer.bytes.count + 30, "\(sample)")
            #expect(try sample.matches([UInt8](answer.bytesWithUnknownFields)), "\(sample): beside unknown fields")
        }
    }

    private struct Question: Encodable {
        let name: String
        let message: String
        let json: String
        let bytes: Data
    }

    private struct Answer: Decodable, Sendable {
        let name: String
        let differences: [String]
        let bytes: Data
        let bytesWithUnknownFields: Data
    }

    private func convert(_ samples: [Sample], in folder: URL) async throws -> [Answer] {
        let protos = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Sources/Model/SyncWire/Protos")
        let files = try FileManager.default.contentsOfDirectory(atPath: protos.path()).filter { $0.hasSuffix(".proto") }
        try #require(files.count == 7)
        let protoc = try await Command.run(
            ["protoc", "--python_out=\(folder.path())", "-I\(protos.path())"] + files.sorted(), in: folder)
        try #require(
            protoc.status == 0, "protoc failed; install protobuf-compiler: \(protoc.errors)")

        let questions = try samples.map {
            try JSONEncoder().encode(
                Question(name: $0.name, message: $0.message, json: $0.json, bytes: Data($0.bytes)))
        }
        let input = folder.appending(path: "samples")
        let output = folder.appending(path: "answers")
        try Data(questions.joined(separator: [0x0A])).write(to: input)
        let script = try #require(
            Bundle.module.url(forResource: "convert", withExtension: "py", subdirectory: "Python"))
        let python = try await python(in: folder)
        let conversion = try await Command.run(
            [python, script.path(), folder.path(), input.path(), output.path()], in: folder)
        try #require(conversion.status == 0, "\(conversion.errors)")
        return try Data(contentsOf: output).split(separator: 0x0A).map {
            try JSONDecoder().decode(Answer.self, from: Data($0))
        }
    }

    /// The Python that has protobuf: the system's, where its package puts it, else the one on the path.
    private func python(in folder: URL) async throws -> String {
        for python in ["/usr/bin/python3", "python3"] {
            let result = try await Command.run([python, "-c", "import google.protobuf"], in: folder)
            if result.status == 0 { return python }
        }
        throw MissingProgram(
            description: "no python3 has google.protobuf; install python3-protobuf (apt) or protobuf (pip)")
    }

    private struct MissingProgram: Error, CustomStringConvertible {
        let description: String
    }
}

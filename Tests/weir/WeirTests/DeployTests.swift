import Foundation
import Testing
import YAML

/// The files under `deploy` for a cluster agree with the program and with each other.
@Suite(.timeLimit(.minutes(5))) struct DeployTests {
    private static let deploy = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().appending(path: "deploy")

    private let folder: TestFolder
    private let services: [String: YAMLNode]
    private let compose: YAMLNode

    init() throws {
        folder = try TestFolder()
        compose = try #require(try YAMLDocument(Self.text("compose.yaml")).root)
        services = Dictionary(uniqueKeysWithValues: try #require(compose["services"]).entries)
    }

    private static func text(_ name: String) throws -> String {
        try String(contentsOf: deploy.appending(path: name), encoding: .utf8)
    }

    /// The services that run weir, with their commands.
    private var commands: [(service: String, arguments: [String])] {
        get throws {
            try services.filter { $0.value["image"]?.text == "weir" }.sorted { $0.key < $1.key }.map {
                ($0.key, try #require($0.value["command"]).list.compactMap(\.text))
            }
        }
    }

    /// The settings file of a service, with the paths of mounted secrets replaced by paths here.
    private func settings(of service: String, secrets: [String]) throws -> String {
        for secret in secrets { try folder.write(String(repeating: "a1", count: 32), to: "\(service)-\(secret)") }
        let text = try Self.text("cluster.yaml").replacing("/run/secrets/", with: "\(folder.path)/\(service)-")
        return try folder.write(text, to: "\(service).yaml")
    }

    /// A variable with a wrong value ends each command immediately.
    ///
    /// It must be the only problem reported: file and command are valid.
    @Test func everySettingAndFlagIsAccepted() async throws {
        let commands = try commands
        #expect(
            Set(commands.map(\.arguments[0])) == [
                "topics", "migrate", "gateway", "ingest", "ordering", "fanout",
            ])
        for (service, arguments) in commands {
            let index = try #require(arguments.firstIndex(of: "--config"), "\(service)")
            #expect(arguments[index + 1] == "/etc/weir/cluster.yaml", "\(service)")
            let mounted = try #require(services[service])["secrets"]?.list.compactMap(\.text) ?? []
            // What the settings name as a secret; the keys of tokens are public, and read later.
            let opened = mounted.filter { $0 != "token-keys" }
            for secrets in [[], opened] {
                var here = arguments
                here[index + 1] = try settings(of: service, secrets: secrets)
                let run = try await CommandRun.run(here, in: folder, environment: ["WEIR_LOG_LEVEL": "loud"])
                #expect(run.code == 64, "\(service)")
                // It needs every secret that is mounted, and no other.
                let missing = opened.filter { !secrets.contains($0) }.map { "\(folder.path)/\(service)-\($0) (" }
                let starts = ["WEIR_LOG_LEVEL: "] + missing
                #expect(run.errorLines.count == starts.count, "\(service): \(run.errors)")
                for start in starts {
                    #expect(run.errorLines.contains { $0.hasPrefix(start) }, "\(service): \(run.errors)")
                }
            }
        }
    }

    /// Each role reads all it needs from the file, with no default that does not work in a container.
    @Test func theFileSaysWhereEverythingIs() async throws {
        let file = try settings(of: "cluster", secrets: ["postgres-password", "link-key"])
        let expected = [
            ["config", "--storage", "cluster"]: ["data", "schema", "kafka.servers", "postgres.shards"],
            ["config", "gateway"]: ["kafka.servers", "link.fan-outs", "gateway.address", "auth.jwks-file"],
            ["config", "fanout"]: ["data", "kafka.servers", "postgres.shards", "link.address"],
            ["config", "ordering"]: ["kafka.servers", "postgres.shards"],
            ["config", "ingest"]: ["kafka.servers"],
        ]
        for (command, settings) in expected {
            let run = try await CommandRun.run(command + ["--config", file], in: folder)
            #expect(run.code == 0, "\(run.errors)")
            for setting in settings {
                let line = run.output.split(separator: "\n").first { $0.hasPrefix("\(setting):") }
                #expect(line?.contains("cluster.yaml:") == true, "\(command) \(setting): \(line ?? "missing")")
            }
        }
    }

    @Test func healthIsAskedWhereEachProcessListens() async throws {
        let settings = try await CommandRun.run("config", "--schema", "s", in: folder, environment: [:])
        let usual = "127.0.0.1:9464"
        #expect(settings.code == 0)
        let reference = try String(
            contentsOf: Self.deploy.deletingLastPathComponent().appending(path: "docs/configuration.md"),
            encoding: .utf8)
        #expect(reference.contains("| `\(usual)` |"))
        #expect(try Self.text("Dockerfile").contains("http://\(usual)/healthz"))
        for (service, arguments) in try commands {
            let node = try #require(services[service])
            if ["topics", "migrate"].contains(arguments[0]) {
                #expect(node["healthcheck"]?["disable"]?.text == "true", "\(service) ends by itself")
                continue
            }
            let address = Self.value(of: "--operations.address", in: arguments) ?? usual
            let test = node["healthcheck"]?["test"]?.list.compactMap(\.text) ?? []
            #expect(test.last == "http://\(address)/readyz", "\(service)")
        }
    }

    /// Callers reach each gateway at a port of its own; everything else is reached inside the network of the containers alone.
    @Test func gatewaysListenOnTheNetworkAndNothingElseDoes() async throws {
        let gateways = try commands.filter { $0.arguments[0] == "gateway" }
        let fanOuts = try commands.filter { $0.arguments[0] == "fanout" }
        #expect(gateways.count == 2 && fanOuts.count == 2)
        let settings = try #require(try YAMLDocument(Self.text("cluster.yaml")).root)
        #expect(settings["gateway"]?["address"]?.text == "0.0.0.0:7777")
        #expect(settings["auth"]?["method"]?.text == "jwt")
        #expect(settings["auth"]?["jwks-file"]?.text == "/run/secrets/token-keys")
        let published = services.mapValues { $0["ports"]?.list.compactMap(\.text) ?? [] }.filter { !$0.value.isEmpty }
        #expect(published == ["gateway-1": ["7777:7777"], "gateway-2": ["7778:7777"]])
        let link = try #require(settings["link"]?["address"]?.text?.split(separator: ":").last)
        let asked = settings["link"]?["fan-outs"]?.list.compactMap(\.text) ?? []
        #expect(asked == fanOuts.map { "\($0.service):\(link)" }.sorted())
        let brokers = settings["kafka"]?["servers"]?.list.compactMap(\.text) ?? []
        let advertised = services["kafka"]?["environment"]?["KAFKA_ADVERTISED_LISTENERS"]?.text
        #expect(brokers.map { "CONTAINERS://\($0)" } == [advertised])
        for (service, node) in services { #expect(node["network_mode"] == nil, "\(service)") }
        let volumes = fanOuts.flatMap { services[$0.service]?["volumes"]?.list.compactMap(\.text) ?? [] }
        let data = try #require(settings["data"]?.text)
        #expect(Set(volumes).count == 2 && volumes.allSatisfy { $0.hasSuffix(":\(data)") })
    }

    /// The command that compose.yaml names makes the file that it mounts.
    @Test func theKeyOfTokensIsMadeByTheDocumentedCommand() async throws {
        #expect(try Self.text("compose.yaml").contains("weir token key /secrets/tokens\n"))
        #expect(compose["secrets"]?["token-keys"]?["file"]?.text == "secrets/tokens.jwks.json")
        let made = try await CommandRun.run("token", "key", folder.path + "/tokens", in: folder)
        #expect(made.code == 0, "\(made.errors)")
        let file = try settings(of: "gateway-1", secrets: ["postgres-password", "link-key"])
        let token = try await CommandRun.run(
            "token", "create", "abc", "--key", folder.path + "/tokens.pem", "--config", file, in: folder)
        #expect(token.code == 0, "\(token.errors)")
        let check = try await CommandRun.run(
            "token", "check", token.output.trimmingCharacters(in: .whitespacesAndNewlines), "--config", file,
            "--auth.jwks-file", folder.path + "/tokens.jwks.json", in: folder)
        #expect(check.code == 0, "\(check.output)\(check.errors)")
    }

    @Test func everyNameIsDefined() throws {
        let (secrets, volumes) = (compose["secrets"]?.entries ?? [], compose["volumes"]?.entries ?? [])
        for (service, node) in services {
            for secret in node["secrets"]?.list.compactMap(\.text) ?? [] {
                #expect(secrets.contains { $0.0 == secret }, "\(service)")
            }
            for volume in node["volumes"]?.list.compactMap(\.text) ?? [] {
                #expect(volumes.contains { volume.hasPrefix("\($0.0):") }, "\(service)")
            }
            for (other, condition) in node["depends_on"]?.entries ?? [] {
                let needed = try #require(services[other], "\(service)")
                switch condition["condition"]?.text {
                case "service_healthy": #expect(needed["healthcheck"]?["test"] != nil, "\(service)")
                case "service_completed_successfully": #expect(needed["restart"] == nil, "\(service)")
                case let other: Issue.record("\(service): \(other ?? "no condition")")
                }
            }
        }
        #expect(try Self.text("../.gitignore").contains("deploy/secrets/\n"))
        for (_, secret) in secrets { #expect(secret["file"]?.text?.hasPrefix("secrets/") == true) }
    }

    /// The image copies files that exist, and installs the library of each package that a build needs.
    @Test func theImageCopiesWhatIsThereAndHasEveryLibrary() throws {
        let lines = try Self.text("Dockerfile").split(separator: "\n").map(String.init)
        let root = Self.deploy.deletingLastPathComponent()
        for line in lines where line.hasPrefix("COPY ") && !line.contains("--from=") {
            for source in line.split(separator: " ").dropFirst().dropLast() {
                let path = root.appending(path: String(source)).path
                #expect(FileManager.default.fileExists(atPath: path), "\(source)")
                let isSent = try Self.text("Dockerfile.dockerignore").contains("\n!\(source)\n")
                #expect(isSent, "\(source)")
            }
        }
        let needed = try #require(try Self.text("libraries").firstMatch(of: /\nlibraries=\((.*)\)/)).output.1
        let image = try Self.text("Dockerfile")
        for package in needed.split(separator: " ") where package.hasSuffix("-dev") {
            // libsqlite3-dev belongs to libsqlite3-0, libzmq3-dev to libzmq5.
            let name = package.dropLast(4).prefix { !$0.isNumber }
            #expect(image.contains(" \(name)"), "\(package)")
        }
        #expect(image.contains("\nUSER weir\n"))
    }

    private static func value(of flag: String, in arguments: [String]) -> String? {
        arguments.firstIndex(of: flag).map { arguments[$0 + 1] }
    }
}

extension YAMLNode {
    /// The entries of a mapping in their order; none for anything else.
    fileprivate var entries: [(String, YAMLNode)] { (mapping?.entries ?? []).map { ($0.key.text, $0.value) } }

    /// The elements of a sequence; none for anything else.
    fileprivate var list: [YAMLNode] { sequence ?? [] }

    /// A scalar's text.
    fileprivate var text: String? { scalar?.text }

    fileprivate subscript(key: String) -> YAMLNode? { entries.first { $0.0 == key }?.1 }
}

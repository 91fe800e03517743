// swift-tools-version: 6.2
import PackageDescription

/// Settings of every Swift target: the 6 language mode comes with the tools version; existentials and member imports
/// are spelled out.
let swift: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// A library of the system, found by pkg-config; SwiftPM prints the providers when it is missing.
func system(_ name: String, pkgConfig: String, apt: String, brew: String) -> Target {
    .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([apt]), .brew([brew])])
}

/// A room: one target under `Sources`.
func room(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: swift)
}

/// A room with views into bytes: `Lifetimes` lets them depend on what they view.
func views(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(
        name: name, dependencies: dependencies,
        swiftSettings: swift + [.enableExperimentalFeature("Lifetimes")])
}

/// The tests of a room, or of several together, under `Tests`.
func tests(_ name: String, _ dependencies: [Target.Dependency], resources: [Resource] = []) -> Target {
    .testTarget(name: name, dependencies: dependencies, resources: resources, swiftSettings: swift)
}

/// Tests of a port that every adapter runs, under `Tests`.
func suite(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .target(name: name, dependencies: dependencies, path: "Tests/\(name)", swiftSettings: swift)
}

/// JSON's spelling.
///
/// Rounding of doubles needs libm in release builds; Foundation would bring it along.
let jsonText: Target = {
    let target = views("JSONText")
    target.linkerSettings = [.linkedLibrary("m", .when(platforms: [.linux]))]
    return target
}()

/// simdjson from the system behind a shim in C.
///
/// Its pkg-config file holds a define, which SwiftPM warns about and drops, so define and library are named here, and the
/// shim says what to install when the header is missing.
let simdjson: Target = .target(
    name: "CSimdjson",
    cxxSettings: [.define("SIMDJSON_THREADS_ENABLED", to: "1")],
    linkerSettings: [.linkedLibrary("simdjson")]
)

/// ZeroMQ from the system.
///
/// Debian's pkg-config file names folders of a library that libzmq alone needs, which SwiftPM warns about; its header is where
/// every compiler looks.
let zeromq: Target = {
    #if os(macOS)
        let pkgConfig: String? = "libzmq"
    #else
        let pkgConfig: String? = nil
    #endif
    return .systemLibrary(name: "CZeroMQ", pkgConfig: pkgConfig, providers: [.apt(["libzmq3-dev"]), .brew(["zeromq"])])
}()

let package = Package(
    name: "weir",
    platforms: [.macOS(.v26)],
    products: [
        // A library of its own, for a process to be started with; nothing links it.
        .library(name: "FaultyDisk", type: .dynamic, targets: ["FaultyDisk"])
    ],
    targets: [
        // Random numbers that follow from a seed; inputs made of them for the tests of decoders, and how long such tests go on.
        suite("Seeded", []),
        suite("Fuzzing", ["Seeded"]),
        // Clocks that tests move, and that keep what was slept.
        suite("TestClocks", []),

        // What the thread sanitizer cannot see by itself, for tests that run under it.
        .target(
            name: "ThreadSanitizer", path: "Tests/ThreadSanitizer",
            linkerSettings: [.linkedLibrary("dl", .when(platforms: [.linux]))]),

        // Values and rules, pure.
        views("SyncModel", ["JSONText"]),
        tests("SyncModelTests", ["Seeded", "SyncModel"]),

        // JSON as bytes: spelling it, and reading it with simdjson below and safe views above.
        jsonText,
        simdjson,
        views("JSON", ["CSimdjson", "JSONText"]),
        tests("JSONTests", ["Fuzzing", "JSON", "Seeded"]),

        // What records look like: the protobuf contract, and hashes.
        system("COpenSSL", pkgConfig: "libcrypto", apt: "libssl-dev", brew: "openssl@3"),
        room("Digest", ["COpenSSL"]),
        tests("DigestTests", ["Digest"]),
        .target(
            name: "SyncWire", dependencies: ["SyncModel", "Digest"], exclude: ["Protos"], swiftSettings: swift),
        tests("SyncWireTests", ["Fuzzing", "Seeded", "SyncWire", "SyncModel", "Digest"], resources: [.copy("Python")]),

        // Threads of their own for C calls that block, and SQLite: the library of the system, the safe wrapper above it.
        .systemLibrary(name: "CThreadName"),
        room("ThreadExecutor", ["CThreadName"]),
        tests("ThreadExecutorTests", ["CThreadName", "ThreadExecutor"]),
        system("CSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev", brew: "sqlite"),
        room("SQLite", ["CSQLite", "ThreadExecutor"]),
        tests("SQLiteTests", ["SQLite"]),

        // Postgres: the library of the system, the safe wrapper above it, and a server for the tests that need one, in a
        // shell that ends it with them.
        system("CPostgres", pkgConfig: "libpq", apt: "libpq-dev", brew: "libpq"),
        room("Postgres", ["CPostgres", "ThreadExecutor"]),
        suite("ServerShell", []),
        suite("PostgresServer", ["ServerShell", "ThreadExecutor"]),
        tests("PostgresTests", ["Postgres", "PostgresServer", "ServerShell", "ThreadExecutor"]),

        // The web server, which knows nothing of what it serves.
        system("CMicrohttpd", pkgConfig: "libmicrohttpd", apt: "libmicrohttpd-dev", brew: "libmicrohttpd"),
        system("CZlib", pkgConfig: "zlib", apt: "zlib1g-dev", brew: "zlib"),
        .systemLibrary(name: "CEventFD"),
        room("HTTP", ["CMicrohttpd", "CZlib", "CEventFD"]),
        tests("HTTPTests", ["Fuzzing", "HTTP", "CZlib"]),

        // What every role is run with: settings, commands, logs, life cycle.
        system("CYAML", pkgConfig: "yaml-0.1", apt: "libyaml-dev", brew: "libyaml"),
        room("YAML", ["CYAML"]),
        tests("YAMLTests", ["Fuzzing", "YAML"]),
        room("Commands"),
        tests("CommandsTests", ["Commands"]),
        room("Configuration", ["Commands", "YAML"]),
        tests("ConfigurationTests", ["Configuration", "Commands", "YAML"]),
        room("Observability"),
        tests("ObservabilityTests", ["Observability"]),
        room("Metrics"),
        tests("MetricsTests", ["Metrics"]),
        .target(name: "CSignalPipe"),
        room("ServiceLifecycle", ["CSignalPipe", "Observability"]),
        tests("ServiceLifecycleTests", ["ServiceLifecycle", "Observability", "SignalProbe"]),
        // A process for the tests to send signals to.
        .executableTarget(
            name: "SignalProbe", dependencies: ["ServiceLifecycle", "Observability"], path: "Tests/SignalProbe",
            swiftSettings: swift),

        // The operations port: metrics, health, readiness.
        room(
            "Operations",
            ["ChangeLog", "Configuration", "HTTP", "JSONText", "Metrics", "Observability", "ServiceLifecycle"]),
        tests(
            "OperationsTests",
            ["ChangeLog", "Configuration", "MemoryChangeLog", "Metrics", "Operations", "ServiceLifecycle"]),

        // The schema file.
        room("SchemaFile", ["SyncModel", "JSONText", "YAML", "Commands"]),
        tests("SchemaFileTests", ["Fuzzing", "SchemaFile", "Seeded", "SyncModel", "SyncWire"]),

        // Ports.
        room("ChangeLog"),
        room("RecordStore", ["SyncModel"]),
        room("FanOutLink", ["SyncModel"]),

        // What all roles agree on.
        room("Control", ["ChangeLog", "Observability", "SyncModel", "SyncWire"]),
        tests(
            "ControlTests",
            [
                "ChangeLog", "Control", "MemoryChangeLog", "Observability", "SyncModel", "SyncWire", "TestClocks",
            ]),

        // Adapters of the log: what logs within one process share, the embedded log, a log in memory for tests of stages,
        // and the suite that every log passes.
        room("LocalLog", ["ChangeLog"]),
        tests("LocalLogTests", ["ChangeLog", "LocalLog"]),
        room(
            "SQLiteChangeLog", ["ChangeLog", "Configuration", "LocalLog", "Metrics", "SQLite", "ThreadExecutor"]),
        room("MemoryChangeLog", ["ChangeLog", "LocalLog"]),
        suite("ChangeLogConformance", ["ChangeLog"]),
        tests("MemoryChangeLogTests", ["ChangeLog", "ChangeLogConformance", "MemoryChangeLog"]),
        tests(
            "SQLiteChangeLogTests",
            ["ChangeLog", "ChangeLogConformance", "Metrics", "SQLite", "SQLiteChangeLog", "ThreadExecutor"]),

        // The log in Kafka: the library of the system, the safe wrapper above it, the adapter, and a cluster within the
        // process and brokers of their own for tests.
        system("CRdkafka", pkgConfig: "rdkafka", apt: "librdkafka-dev", brew: "librdkafka"),
        room("Kafka", ["CRdkafka", "ThreadExecutor"]),
        room("KafkaChangeLog", ["ChangeLog", "Configuration", "Kafka", "Observability", "ThreadExecutor"]),
        suite("MockKafka", ["CRdkafka", "ThreadSanitizer"]),
        suite("KafkaServer", ["ServerShell", "ThreadExecutor"]),
        tests("KafkaTests", ["Kafka", "MockKafka", "ThreadExecutor"]),
        tests(
            "KafkaChangeLogTests",
            [
                "ChangeLog", "ChangeLogConformance", "Commands", "Configuration", "Kafka", "KafkaChangeLog",
                "KafkaServer", "MockKafka", "Observability", "Seeded", "ServerShell", "ThreadExecutor",
            ]),

        // The tables: typed values and canonical JSON, the embedded store, and the suite that every store passes.
        room("CanonicalValues", ["JSONText", "SyncModel"]),
        tests("CanonicalValuesTests", ["CanonicalValues", "Fuzzing", "Seeded", "SyncModel"]),
        room(
            "SQLiteRecordStore",
            [
                "CanonicalValues", "Configuration", "Metrics", "RecordStore", "SQLite", "SyncModel", "SyncWire",
            ]),
        room("MemoryRecordStore", ["CanonicalValues", "RecordStore", "SyncModel"]),
        tests("MemoryRecordStoreTests", ["MemoryRecordStore", "RecordStoreConformance"]),
        suite("RecordStoreConformance", ["RecordStore", "Seeded", "SyncModel", "SyncWire"]),
        tests(
            "SQLiteRecordStoreTests",
            [
                "Metrics", "RecordStore", "RecordStoreConformance", "SQLite", "SQLiteRecordStore", "SyncModel",
                "SyncWire",
            ]),

        // The tables in Postgres, for workers on several machines.
        room(
            "PostgresRecordStore",
            [
                "CanonicalValues", "Configuration", "Observability", "Postgres", "RecordStore", "SyncModel", "SyncWire",
                "ThreadExecutor",
            ]),
        tests(
            "PostgresRecordStoreTests",
            [
                "Commands", "Configuration", "JSONText", "Observability", "Postgres", "PostgresRecordStore",
                "PostgresServer", "RecordStore", "RecordStoreConformance", "Seeded", "SQLiteRecordStore", "SyncModel",
                "SyncWire",
            ]),

        // Stages.
        .target(
            name: "Gateway",
            dependencies: [
                "SyncModel", "SyncWire", "ChangeLog", "FanOutLink", "HTTP", "JSON", "JSONText", "Configuration",
                "Metrics", "Observability",
            ],
            resources: [.embedInCode("Resources/openapi.json"), .embedInCode("Resources/errors.md")],
            swiftSettings: swift),
        room(
            "Ingest",
            [
                "SyncModel", "SyncWire", "ChangeLog", "Digest", "JSON", "JSONText", "Configuration", "Metrics",
                "Observability",
            ]),
        tests(
            "IngestTests",
            [
                "ChangeLog", "Commands", "Configuration", "Control", "Fuzzing", "Ingest", "JSON", "Metrics",
                "Observability", "Seeded", "SyncModel", "SyncWire",
            ]),
        tests(
            "GatewayTests",
            [
                "CZlib", "ChangeLog", "Configuration", "FanOutLink", "Fuzzing", "Gateway", "HTTP", "JSON", "Metrics",
                "Observability", "SyncModel", "SyncWire", "TestClocks",
            ]),
        room(
            "Ordering",
            ["SyncModel", "SyncWire", "ChangeLog", "RecordStore", "Configuration", "Metrics", "Observability"]),
        tests(
            "OrderingTests",
            [
                "ChangeLog", "Control", "MemoryChangeLog", "Metrics", "Observability", "Ordering", "RecordStore",
                "Seeded", "SQLiteRecordStore", "SyncModel", "SyncWire", "TestClocks",
            ]),
        room(
            "FanOut",
            [
                "ChangeLog", "Configuration", "CZlib", "FanOutLink", "JSONText", "Metrics", "RecordStore", "SQLite",
                "SyncModel", "SyncWire", "ThreadExecutor",
            ]),
        tests(
            "FanOutTests",
            [
                "ChangeLog", "Configuration", "Control", "FanOut", "FanOutLink", "LinkWire", "Metrics", "NetworkLink",
                "Observability", "RecordStore", "Seeded", "SQLite", "SyncModel", "SyncWire", "TestClocks",
            ]),

        // Streams made from tables in Postgres, with ordering at work.
        tests(
            "StreamsFromPostgresTests",
            [
                "ChangeLog", "FanOut", "FanOutLink", "MemoryChangeLog", "MemoryRecordStore", "Observability",
                "Ordering", "Postgres", "PostgresRecordStore", "PostgresServer", "RecordStore", "Seeded", "SyncModel",
                "SyncWire",
            ]),

        // The link between gateways and fan-outs that are processes of their own: the library of the system, the safe
        // wrapper above it, the messages, and both ends.
        zeromq,
        room("ZeroMQ", ["CZeroMQ"]),
        tests("ZeroMQTests", ["ThreadExecutor", "ZeroMQ"]),
        .target(
            name: "LinkWire", dependencies: ["FanOutLink", "SyncModel", "SyncWire"], exclude: ["Protos"],
            swiftSettings: swift),
        tests("LinkWireTests", ["FanOutLink", "Fuzzing", "LinkWire", "SyncModel", "SyncWire"]),
        room(
            "NetworkLink",
            [
                "Configuration", "Digest", "FanOutLink", "LinkWire", "Metrics", "Observability", "SyncModel",
                "SyncWire", "ThreadExecutor", "ZeroMQ",
            ]),
        tests(
            "NetworkLinkTests",
            [
                "Commands", "Configuration", "FanOutLink", "Fuzzing", "LinkWire", "Metrics", "NetworkLink",
                "Observability", "Seeded", "SyncModel", "SyncWire", "TestClocks", "ThreadExecutor", "ZeroMQ",
            ]),

        // Making results anew from the log, and comparing.
        room(
            "Verification",
            [
                "ChangeLog", "Digest", "FanOut", "Ingest", "Observability", "Ordering", "RecordStore", "SyncModel",
                "SyncWire",
            ]),
        tests(
            "VerificationTests",
            [
                "ChangeLog", "FanOut", "MemoryChangeLog", "Observability", "Ordering", "RecordStore", "SQLite",
                "SQLiteRecordStore", "SyncModel", "SyncWire", "TestClocks", "Verification",
            ]),

        // What Weir promises, measured over HTTP against a process of its own.
        room("Benchmark", ["Commands", "JSONText", "Kafka", "Postgres", "SQLite", "SyncModel", "ThreadExecutor"]),
        tests("BenchmarkTests", ["Benchmark", "Commands"]),

        // The whole pipeline on one thread, in an order that a seed decides.
        .target(name: "CJobCapture"),
        room(
            "Simulation",
            [
                "CJobCapture", "ChangeLog", "FanOut", "FanOutLink", "Gateway", "HTTP", "Ingest", "JSON",
                "MemoryChangeLog",
                "MemoryRecordStore", "Observability", "Ordering", "RecordStore", "SyncModel", "SyncWire",
                "ThreadExecutor",
            ]),
        tests("SimulationTests", ["Simulation"]),

        // The program: the only place that puts the parts together.
        .executableTarget(
            name: "weir",
            dependencies: [
                "Benchmark", "ChangeLog", "Commands", "Configuration", "Control", "Digest", "FanOut", "FanOutLink",
                "Gateway", "HTTP", "Ingest", "KafkaChangeLog", "LinkWire", "Metrics", "NetworkLink", "Observability",
                "Operations", "Ordering", "PostgresRecordStore", "RecordStore", "SQLite", "SQLiteChangeLog",
                "SQLiteRecordStore",
                "SchemaFile", "ServiceLifecycle", "Simulation", "SyncModel", "SyncWire", "Verification",
            ],
            swiftSettings: swift),
        // A disk that loses power or runs full, for the program under test.
        .target(
            name: "FaultyDisk", path: "Tests/FaultyDisk",
            linkerSettings: [.linkedLibrary("dl", .when(platforms: [.linux]))]),
        tests(
            "WeirTests",
            [
                "ChangeLog", "CZlib", "Fuzzing", "Kafka", "KafkaChangeLog", "KafkaServer", "Postgres", "PostgresServer",
                "Seeded", "ServerShell", "SQLite", "SyncModel", "SyncWire", "ThreadExecutor", "weir", "YAML",
            ]),
    ]
)

// A build of a part: the targets named, and what they need. Sanitizers look at the rooms with C alone.
if let names = Context.environment["WEIR_TARGETS"] {
    var wanted = names.split(separator: ",").map(String.init)
    var kept: Set<String> = []
    while let name = wanted.popLast() {
        guard kept.insert(name).inserted, let target = package.targets.first(where: { $0.name == name }) else {
            continue
        }
        for case .byNameItem(let dependency, _) in target.dependencies { wanted.append(dependency) }
    }
    package.targets.removeAll { !kept.contains($0.name) }
    if !kept.contains("FaultyDisk") { package.products = [] }
}

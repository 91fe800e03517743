// swift-tools-version: 6.2
import PackageDescription

// Each target is named with its path: `library("Pipeline/Ingest", …)` is the module Ingest in Sources/Pipeline/Ingest.
// docs/architecture.md says what each folder holds and which folders it may import; ArchitectureTests hold this list to it.

/// Settings of every Swift target: the 6 language mode comes with the tools version; existentials and member imports
/// are spelled out.
let swift: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

extension SwiftSetting {
    /// Views into bytes, whose lifetimes depend on what they view.
    static let lifetimes = SwiftSetting.enableExperimentalFeature("Lifetimes")
}

/// The module at the end of a path.
func name(of path: String) -> String { String(path.split(separator: "/").last!) }

/// A library of Weir in Swift, under `Sources`.
func library(
    _ path: String, _ dependencies: [Target.Dependency] = [], features: [SwiftSetting] = [], exclude: [String] = [],
    resources: [Resource] = [], linking: [String] = []
) -> Target {
    .target(
        name: name(of: path), dependencies: dependencies, path: "Sources/\(path)", exclude: exclude,
        resources: resources,
        swiftSettings: swift + features, linkerSettings: linking.map { .linkedLibrary($0) })
}

/// A program, under `Sources`.
func program(_ path: String, _ dependencies: [Target.Dependency]) -> Target {
    .executableTarget(
        name: name(of: path), dependencies: dependencies, path: "Sources/\(path)", swiftSettings: swift)
}

/// A C library of the system, found by pkg-config where it has a file there that SwiftPM can read.
func systemLibrary(_ path: String, pkgConfig: String? = nil, apt: String? = nil) -> Target {
    .systemLibrary(
        name: name(of: path), path: "Sources/\(path)", pkgConfig: pkgConfig, providers: apt.map { [.apt([$0])] })
}

/// C or C++ code of Weir's own, under `Sources`.
func cLibrary(_ path: String, defines: [String] = [], linking: [String] = []) -> Target {
    .target(
        name: name(of: path), path: "Sources/\(path)", cxxSettings: defines.map { .define($0, to: "1") },
        linkerSettings: linking.map { .linkedLibrary($0) })
}

/// The tests of one module, or of several together, under `Tests`.
func tests(
    _ path: String, _ dependencies: [Target.Dependency], exclude: [String] = [], resources: [Resource] = []
) -> Target {
    .testTarget(
        name: name(of: path), dependencies: dependencies, path: "Tests/\(path)", exclude: exclude, resources: resources,
        swiftSettings: swift)
}

/// What several test targets share, under `Tests`.
func support(_ path: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name(of: path), dependencies: dependencies, path: "Tests/\(path)", swiftSettings: swift)
}

/// C code for tests, under `Tests`.
func cSupport(_ path: String) -> Target {
    .target(name: name(of: path), path: "Tests/\(path)", linkerSettings: [.linkedLibrary("dl")])
}

let package = Package(
    name: "weir",
    // The first of Apple's systems that have strings of validated UTF-8, and `Mutex` for the tests of apps.
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        // For apps: syncs the app's SQLite database.
        .library(name: "WeirClient", targets: ["WeirClient"]),
        // For tests of apps: devices and a server in one process.
        .library(name: "WeirTesting", targets: ["WeirTesting"]),
        // A library of its own, for a process to be started with; nothing links it.
        .library(name: "FaultyDisk", type: .dynamic, targets: ["FaultyDisk"]),
        // Programs beside the server.
        .executable(name: "weir-bench", targets: ["Benchmark"]),
        .executable(name: "weir-chaos", targets: ["Chaos"]),
        .executable(name: "weir-demo", targets: ["Demo"]),
        .executable(name: "weir-device", targets: ["Device"]),
        .executable(name: "weir-simulate", targets: ["Simulation"]),
        .executable(name: "weir-mutants", targets: ["Mutants"]),
    ],
    targets: [
        // Pipeline: The stages, in the order of a change, and the topic that they agree on.
        library(
            "Pipeline/Gateway",
            [
                "AsyncPrimitives", "ChangeLog", "Configuration", "DeviceRegistry", "Digest", "FanOutLink", "HTTP",
                "HTTPDownload", "JSON", "JSONText", "Metrics", "Observability", "OwnerFileStore", "SyncModel",
                "SyncWire",
                "TokenKeys", "WebTokens",
            ],
            resources: ["Resources/openapi.json", "Resources/errors.md"].map { .embedInCode($0) }
                + [
                    "page.html", "page.css", "icon.svg", "page.js", "card.js", "rows.js", "cells.js", "path.js",
                    "journeys.js", "session.js", "server.js", "device.js", "storage.js",
                ].map { .embedInCode("Demo/\($0)") }),
        library(
            "Pipeline/Ingest",
            [
                "AsyncPrimitives", "ChangeLog", "Configuration", "Digest", "JSON", "JSONText", "Metrics",
                "Observability", "PartitionSupervision", "SyncModel", "SyncWire", "ThreadExecutor",
            ]),
        library(
            "Pipeline/Ordering",
            [
                "AsyncPrimitives", "ChangeLog", "Configuration", "Metrics", "Observability", "PartitionSupervision",
                "RecordStore", "SyncModel", "SyncWire",
            ]),
        library(
            "Pipeline/FanOut",
            [
                "AsyncPrimitives", "ChangeLog", "Configuration", "CZlib", "FanOutLink", "JSONText", "Metrics",
                "PartitionSupervision", "RecordStore", "SQLite", "SyncModel", "SyncWire", "ThreadExecutor",
            ]),
        library(
            "Pipeline/PartitionSupervision",
            ["AsyncPrimitives", "ChangeLog", "Metrics", "Observability", "SyncModel"]),
        library(
            "Pipeline/Control",
            ["AsyncPrimitives", "ChangeLog", "Observability", "PartitionSupervision", "SyncModel", "SyncWire"]),

        // Faces: Other protocols, which the gateway speaks.
        library(
            "Faces/CrudFace", ["FanOutLink", "Gateway", "HTTP", "JSON", "JSONText", "SyncModel"], features: [.lifetimes]
        ),
        library(
            "Faces/RestFace", ["FanOutLink", "Gateway", "HTTP", "JSON", "JSONText", "SyncModel"], features: [.lifetimes]
        ),
        library(
            "Faces/SQLiteNowFace", ["FanOutLink", "Gateway", "HTTP", "JSON", "JSONText", "SyncModel"],
            features: [.lifetimes]),
        library(
            "Faces/TrackerFace",
            [
                "DeviceRegistry", "Digest", "FanOutLink", "Gateway", "HTTP", "JSON", "JSONText", "OwnerFileStore",
                "SyncModel",
            ],
            features: [.lifetimes]),

        // Model: What a change is, its rules, and how both are encoded.
        library("Model/SyncModel", ["JSONText"], features: [.lifetimes]),
        library("Model/CanonicalValues", ["JSONText", "SyncModel"]),
        library("Model/SyncWire", ["Digest", "SyncModel"], exclude: ["Protos"]),
        library("Model/SchemaFile", ["Commands", "JSONText", "SyncModel", "YAML"]),

        // Ports: What the stages need from outside.
        library("Ports/ChangeLog", ["AsyncPrimitives"]),
        library("Ports/RecordStore", ["SyncModel"]),
        library("Ports/FanOutLink", ["SyncModel"]),
        library("Ports/DeviceRegistry", ["SyncModel"]),
        library("Ports/OwnerFileStore", ["SyncModel"]),

        // Adapters: What the ports are implemented with.
        library(
            "Adapters/KafkaChangeLog",
            [
                "AsyncPrimitives", "ChangeLog", "Configuration", "Kafka", "Observability", "ThreadExecutor",
            ]),
        library(
            "Adapters/SQLiteChangeLog",
            ["AsyncPrimitives", "ChangeLog", "Configuration", "LocalLog", "Metrics", "SQLite", "ThreadExecutor"]),
        library("Adapters/MemoryChangeLog", ["AsyncPrimitives", "ChangeLog", "LocalLog"]),
        library("Adapters/LocalLog", ["AsyncPrimitives", "ChangeLog"]),
        library(
            "Adapters/PostgresRecordStore",
            [
                "AsyncPrimitives", "CanonicalValues", "Configuration", "Observability", "Postgres", "RecordStore",
                "RelationalTables",
                "SyncModel", "SyncWire",
            ]),
        library(
            "Adapters/SQLiteRecordStore",
            [
                "CanonicalValues", "Configuration", "Metrics", "RecordStore", "RelationalTables", "SQLite",
                "SyncModel", "SyncWire",
            ]),
        library("Adapters/MemoryRecordStore", ["CanonicalValues", "RecordStore", "SyncModel"]),
        library(
            "Adapters/PostgresDeviceRegistry",
            [
                "DeviceRegistry", "Postgres", "PostgresRecordStore", "SyncModel", "SyncWire",
            ]),
        library("Adapters/SQLiteDeviceRegistry", ["DeviceRegistry", "SQLite", "SyncModel", "SyncWire"]),
        library(
            "Adapters/PostgresOwnerFileStore", ["OwnerFileStore", "Postgres", "PostgresRecordStore", "SyncModel"]),
        library("Adapters/SQLiteOwnerFileStore", ["OwnerFileStore", "SQLite", "SyncModel"]),
        library(
            "Adapters/NetworkLink",
            [
                "AsyncPrimitives", "Configuration", "Digest", "FanOutLink", "Metrics", "Observability", "SyncModel",
                "SyncWire", "ThreadExecutor", "ZeroMQ",
            ], exclude: ["Wire/Protos"]),
        library(
            "Adapters/RelationalTables",
            ["AsyncPrimitives", "CanonicalValues", "RecordStore", "SyncModel", "SyncWire", "ThreadExecutor"]),

        // Platform: Libraries that know nothing of changes.
        library(
            "Platform/Operations",
            ["Configuration", "HTTP", "JSONText", "Metrics", "Observability", "ServiceLifecycle"]),
        library(
            "Platform/HTTP", ["AsyncPrimitives", "CEventFD", "CGnuTLS", "CMicrohttpd", "CZlib", "ThreadExecutor"]),
        library("Platform/JSON", ["CSimdjson", "JSONText"], features: [.lifetimes]),
        library("Platform/JSONText", features: [.lifetimes], linking: ["m"]),
        library("Platform/Allocator", ["CJemalloc"]),
        library("Platform/YAML", ["CYAML"]),
        library("Platform/AsyncPrimitives"),
        library("Platform/Commands"),
        library("Platform/Configuration", ["Commands", "YAML"]),
        library("Platform/Metrics"),
        library("Platform/Observability"),
        library("Platform/ServiceLifecycle", ["AsyncPrimitives", "CSignalPipe", "Observability", "ThreadExecutor"]),
        library("Platform/ThreadExecutor", ["AsyncPrimitives", "CThreads"]),
        library("Platform/Digest", ["COpenSSL"]),
        library("Platform/WebTokens", ["COpenSSL", "Digest", "JSON", "JSONText"]),
        library("Platform/HTTPDownload", ["CCurl", "ThreadExecutor"]),
        library(
            "Platform/TokenKeys",
            ["AsyncPrimitives", "HTTPDownload", "Observability", "ThreadExecutor", "WebTokens"]),
        library("Platform/SQLite", ["CWeirSQLite", "ThreadExecutor"]),
        library("Platform/Postgres", ["CPostgres", "ThreadExecutor"]),
        library("Platform/Kafka", ["CRdkafka", "ThreadExecutor"]),
        library("Platform/ZeroMQ", ["CZeroMQ"]),

        // CLibraries: C as Swift sees it. Debian's pkg-config files of simdjson and ZeroMQ hold flags that SwiftPM warns about
        // and drops, so simdjson's define and library are named here, and ZeroMQ's in its module map.
        cLibrary("CLibraries/CSimdjson", defines: ["SIMDJSON_THREADS_ENABLED"], linking: ["simdjson"]),
        cLibrary("CLibraries/CSignalPipe"),
        systemLibrary("CLibraries/CCurl", pkgConfig: "libcurl", apt: "libcurl4-openssl-dev"),
        systemLibrary("CLibraries/CEventFD"),
        systemLibrary("CLibraries/CGnuTLS", pkgConfig: "gnutls", apt: "libgnutls28-dev"),
        systemLibrary("CLibraries/CJemalloc", pkgConfig: "jemalloc", apt: "libjemalloc-dev"),
        systemLibrary("CLibraries/CMicrohttpd", pkgConfig: "libmicrohttpd", apt: "libmicrohttpd-dev"),
        systemLibrary("CLibraries/COpenSSL", pkgConfig: "libcrypto", apt: "libssl-dev"),
        systemLibrary("CLibraries/CPostgres", pkgConfig: "libpq", apt: "libpq-dev"),
        systemLibrary("CLibraries/CRdkafka", pkgConfig: "rdkafka", apt: "librdkafka-dev"),
        // Apps that use the client have other packages with a module CSQLite, and module names are unique in a build.
        systemLibrary("CLibraries/CWeirSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev"),
        systemLibrary("CLibraries/CThreads"),
        systemLibrary("CLibraries/CYAML", pkgConfig: "yaml-0.1", apt: "libyaml-dev"),
        systemLibrary("CLibraries/CZeroMQ", apt: "libzmq3-dev"),
        systemLibrary("CLibraries/CZlib", pkgConfig: "zlib", apt: "zlib1g-dev"),

        // Client: The library for apps, which needs SQLite and Foundation alone.
        library("Client/WeirClient", ["CWeirSQLite", "JSONText"]),
        library("Client/LocalTables", ["WeirClient"]),
        program("Client/Device", ["Commands", "LocalTables", "WeirClient"]),

        // Composition: The whole pipeline in one process, which the server and tests of apps have.
        library(
            "Composition/EmbeddedPipeline",
            [
                "AsyncPrimitives", "ChangeLog", "Commands", "Configuration", "Control", "CrudFace", "DeviceRegistry",
                "Digest", "FanOut", "FanOutLink", "Gateway", "HTTP", "Ingest", "Metrics", "Observability",
                "Operations", "Ordering", "OwnerFileStore", "PartitionSupervision", "RecordStore", "RestFace",
                "SchemaFile", "ServiceLifecycle", "SQLiteChangeLog", "SQLiteDeviceRegistry", "SQLiteNowFace",
                "SQLiteOwnerFileStore", "SQLiteRecordStore", "SyncModel", "SyncWire", "TokenKeys", "TrackerFace",
            ]),

        // Assurance: Checking, simulating and measuring the pipeline.
        library(
            "Assurance/Verification",
            [
                "AsyncPrimitives", "ChangeLog", "Digest", "FanOut", "Ingest", "Observability", "Ordering",
                "PartitionSupervision", "RecordStore", "SyncModel", "SyncWire",
            ]),
        library("Assurance/DeviceModel", ["JSON", "SyncModel"]),
        library("Assurance/LoadTools", ["ThreadExecutor"]),
        library("Assurance/TopicAudit", ["ChangeLog", "Digest", "SyncModel", "SyncWire"]),
        library("Assurance/ServerShell"),
        library("Assurance/KafkaServer", ["ServerShell", "ThreadExecutor"]),
        library("Assurance/PostgresServer", ["ServerShell", "ThreadExecutor"]),
        program(
            "Assurance/Chaos",
            [
                "Commands", "DeviceModel", "KafkaChangeLog", "KafkaServer", "LoadTools", "Postgres", "PostgresServer",
                "SchemaFile", "ServerShell", "ServiceLifecycle", "SyncModel", "ThreadExecutor", "TopicAudit",
                "WebTokens",
            ]),
        program(
            "Assurance/Simulation",
            [
                "AsyncPrimitives", "ChangeLog", "CJobCapture", "Commands", "Configuration", "DeviceModel", "FanOut",
                "FanOutLink", "Gateway", "HTTP", "Ingest", "JSON", "MemoryChangeLog", "MemoryRecordStore",
                "Observability", "Ordering", "PartitionSupervision", "RecordStore", "SyncModel", "SyncWire",
                "ThreadExecutor", "TokenKeys", "WebTokens",
            ]),
        program("Assurance/Mutants", ["Commands"]),
        program(
            "Assurance/Demo",
            [
                "AsyncPrimitives", "Commands", "EmbeddedPipeline", "LocalTables", "SchemaFile", "ServiceLifecycle",
                "WeirClient", "WeirTesting",
            ]),
        library(
            "Assurance/WeirTesting",
            [
                "AsyncPrimitives", "DeviceModel", "EmbeddedPipeline", "HTTP", "Ingest", "JSON", "JSONText",
                "LocalTables", "SchemaFile", "SyncModel", "WeirClient",
            ]),
        program(
            "Assurance/Benchmark",
            [
                "CEventFD", "Commands", "CZlib", "Gateway", "HTTP", "JSONText", "Kafka", "LoadTools", "Ordering",
                "Postgres", "ServiceLifecycle", "SQLite", "SQLiteChangeLog", "SQLiteRecordStore", "SyncModel",
                "ThreadExecutor", "TokenKeys", "WebTokens", "WeirClient",
            ]),
        cLibrary("Assurance/CJobCapture"),

        // The server and its commands.
        program(
            "weir",
            [
                "Allocator", "AsyncPrimitives", "ChangeLog", "Commands", "Configuration", "Control", "DeviceRegistry",
                "EmbeddedPipeline", "FanOut", "Gateway", "Ingest", "JSON", "KafkaChangeLog", "Metrics", "NetworkLink",
                "Observability", "Operations", "Ordering", "OwnerFileStore", "PostgresDeviceRegistry",
                "PostgresOwnerFileStore", "PostgresRecordStore", "RecordStore", "ServiceLifecycle", "SQLite",
                "SQLiteChangeLog", "SQLiteRecordStore", "SyncModel", "SyncWire", "ThreadExecutor", "TokenKeys",
                "Verification", "WebTokens",
            ]),

        // Tests, in the same folders; Conformance holds the suites that every adapter of a port passes, Support what tests share.
        tests(
            "Pipeline/ControlTests",
            [
                "ChangeLog", "Control", "MemoryChangeLog", "Observability", "PartitionSupervision", "SyncModel",
                "SyncWire", "TestClocks",
            ]),
        tests(
            "Pipeline/FanOutTests",
            [
                "AsyncPrimitives", "ChangeLog", "Configuration", "FanOut", "FanOutLink", "IndexDamage", "Metrics",
                "NetworkLink", "Observability", "PartitionSupervision", "RecordStore", "Seeded", "SQLite", "SyncModel",
                "SyncWire", "TestClocks", "ThreadExecutor",
            ]),
        tests(
            "Faces/CrudFaceTests",
            ["CrudFace", "Gateway", "HTTP", "ScriptedFaces", "SyncModel"]),
        tests(
            "Faces/FaceTests",
            ["CrudFace", "Gateway", "HTTP", "RestFace", "ScriptedFaces", "SQLiteNowFace", "SyncModel", "TrackerFace"]),
        tests(
            "Faces/TrackerFaceTests",
            ["Gateway", "HTTP", "ScriptedFaces", "SyncModel", "TrackerFace"]),
        tests(
            "Pipeline/GatewayTests",
            [
                "AsyncPrimitives", "ChangeLog", "Configuration", "CZlib", "DeviceRegistry", "FanOutLink", "Fuzzing",
                "Gateway", "HTTP", "HTTPDownload", "JSON", "JSONText", "Metrics", "Observability", "RestFace",
                "SQLiteDeviceRegistry",
                "SyncModel", "SyncWire", "TestAuthority", "TestClocks", "TestSignals", "TokenKeys", "WebTokens",
            ]),
        tests(
            "Pipeline/IngestTests",
            [
                "ChangeLog", "Commands", "Configuration", "Digest", "Fuzzing", "Ingest", "JSON", "KafkaChangeLog",
                "Metrics", "MockKafka", "Observability", "PartitionSupervision", "Seeded", "SyncModel", "SyncWire",
            ]),
        tests(
            "Pipeline/OrderingTests",
            [
                "ChangeLog", "Configuration", "KafkaChangeLog", "MemoryChangeLog", "Metrics", "MockKafka",
                "Observability", "Ordering", "PartitionSupervision", "Postgres", "PostgresRecordStore",
                "PostgresServer", "RecordStore", "Seeded", "SQLiteRecordStore", "SyncModel", "SyncWire", "TestClocks",
            ]),
        tests(
            "Pipeline/StreamsFromPostgresTests",
            [
                "ChangeLog", "Configuration", "FanOut", "FanOutLink", "MemoryChangeLog", "MemoryRecordStore",
                "Observability", "Ordering", "PartitionSupervision", "Postgres", "PostgresRecordStore",
                "PostgresServer", "RecordStore", "Seeded", "SyncModel", "SyncWire",
            ]),
        tests(
            "Pipeline/PartitionSupervisionTests",
            [
                "AsyncPrimitives", "ChangeLog", "MemoryChangeLog", "Metrics", "PartitionSupervision", "SyncModel",
                "TestClocks", "TestSignals",
            ]),
        tests("Model/CanonicalValuesTests", ["CanonicalValues", "Fuzzing", "Seeded", "SyncModel"]),
        tests("Model/SchemaFileTests", ["Fuzzing", "SchemaFile", "Seeded", "SyncModel", "SyncWire"]),
        tests("Model/SyncModelTests", ["Seeded", "SyncModel"]),
        tests(
            "Model/SyncWireTests",
            [
                "Digest", "Fuzzing", "Seeded", "SyncModel", "SyncWire",
            ], resources: [.copy("Python")]),
        tests(
            "Adapters/KafkaChangeLogTests",
            [
                "AsyncPrimitives", "ChangeLog", "ChangeLogConformance", "Commands", "Configuration", "Fuzzing", "Kafka",
                "KafkaChangeLog", "KafkaServer", "MockKafka", "Observability", "Seeded", "ServerShell",
                "TestResources", "TestSignals", "ThreadExecutor",
            ]),
        tests("Adapters/LocalLogTests", ["AsyncPrimitives", "ChangeLog", "LocalLog", "Seeded"]),
        tests("Adapters/MemoryChangeLogTests", ["ChangeLog", "ChangeLogConformance", "MemoryChangeLog"]),
        tests(
            "Adapters/PostgresDeviceRegistryTests",
            [
                "DeviceRegistry", "DeviceRegistryConformance", "Postgres", "PostgresDeviceRegistry",
                "PostgresRecordStore", "PostgresServer", "SyncModel",
            ]),
        tests(
            "Adapters/SQLiteDeviceRegistryTests",
            ["DeviceRegistry", "DeviceRegistryConformance", "SQLiteDeviceRegistry", "SyncModel"]),
        tests(
            "Adapters/PostgresOwnerFileStoreTests",
            [
                "OwnerFileStore", "OwnerFileStoreConformance", "Postgres", "PostgresOwnerFileStore",
                "PostgresRecordStore", "PostgresServer", "SyncModel",
            ]),
        tests(
            "Adapters/SQLiteOwnerFileStoreTests",
            ["OwnerFileStore", "OwnerFileStoreConformance", "SQLiteOwnerFileStore", "SyncModel"]),
        tests("Adapters/MemoryRecordStoreTests", ["MemoryRecordStore", "RecordStoreConformance"]),
        tests(
            "Adapters/NetworkLinkTests",
            [
                "Commands", "Configuration", "FanOutLink", "Fuzzing", "Metrics", "NetworkLink", "Observability",
                "Seeded", "SyncModel", "SyncWire", "TestClocks", "ThreadExecutor", "ZeroMQ",
            ]),
        tests(
            "Adapters/PostgresRecordStoreTests",
            [
                "AsyncPrimitives", "Commands", "Configuration", "Fuzzing", "JSONText", "Postgres",
                "PostgresRecordStore", "PostgresServer",
                "RecordStore", "RecordStoreConformance", "Seeded", "SQLiteRecordStore", "SyncModel", "SyncWire",
            ]),
        tests(
            "Adapters/SQLiteChangeLogTests",
            [
                "AsyncPrimitives", "ChangeLog", "ChangeLogConformance", "Configuration", "Metrics", "SQLite",
                "SQLiteChangeLog", "ThreadExecutor",
            ]),
        tests(
            "Adapters/SQLiteRecordStoreTests",
            [
                "Configuration", "Metrics", "RecordStore", "RecordStoreConformance", "SQLite", "SQLiteRecordStore",
                "SyncModel", "SyncWire", "TestResources",
            ]),
        tests("Platform/AllocatorTests", ["Allocator"]),
        tests("Platform/AsyncPrimitivesTests", ["AsyncPrimitives", "TestClocks", "TestResources"]),
        tests("Platform/CommandsTests", ["Commands"]),
        tests("Platform/ConfigurationTests", ["Commands", "Configuration", "YAML"]),
        tests("Platform/DigestTests", ["Digest"]),
        tests("Platform/WebTokensTests", ["Fuzzing", "JSON", "WebTokens"]),
        tests("Platform/HTTPDownloadTests", ["HTTP", "HTTPDownload", "TestAuthority", "TestResources", "TestSignals"]),
        tests(
            "Platform/TokenKeysTests",
            [
                "AsyncPrimitives", "HTTPDownload", "TestAuthority", "TestClocks", "TestResources", "TestSignals",
                "TokenKeys", "WebTokens",
            ]),
        tests("Platform/HTTPTests", ["CZlib", "Fuzzing", "HTTP", "TestSignals", "ThreadExecutor"]),
        tests("Platform/JSONTests", ["Fuzzing", "JSON", "JSONText", "Seeded"]),
        tests("Platform/KafkaTests", ["Kafka", "MockKafka", "ThreadExecutor"]),
        tests("Platform/MetricsTests", ["Metrics"]),
        tests("Platform/ObservabilityTests", ["Observability"]),
        tests(
            "Platform/OperationsTests",
            [
                "Configuration", "Metrics", "Operations", "ServiceLifecycle", "TestClocks",
            ]),
        tests("Platform/PostgresTests", ["Postgres", "PostgresServer", "ServerShell", "ThreadExecutor"]),
        tests("Platform/SQLiteTests", ["SQLite", "TestResources", "ThreadExecutor"]),
        tests("Platform/ServiceLifecycleTests", ["Observability", "ServiceLifecycle", "SignalProbe", "TestClocks"]),
        tests("Platform/ThreadExecutorTests", ["AsyncPrimitives", "CThreads", "TestResources", "ThreadExecutor"]),
        tests("Platform/YAMLTests", ["Fuzzing", "YAML"]),
        tests("Platform/ZeroMQTests", ["ThreadExecutor", "ZeroMQ"]),
        tests(
            "Client/WeirClientTests",
            ["CWeirSQLite", "Fuzzing", "JSON", "Seeded", "TestClocks", "TestResources", "TestSignals", "WeirClient"]),
        tests(
            "Composition/EmbeddedPipelineTests",
            [
                "ChangeLog", "EmbeddedPipeline", "Ingest", "MemoryChangeLog", "MemoryRecordStore", "Observability",
                "RecordStore", "SyncModel", "SyncWire", "TestClocks",
            ]),
        tests(
            "Assurance/BenchmarkTests",
            [
                "Benchmark", "Commands", "Fuzzing", "KafkaServer", "LoadTools", "Postgres", "PostgresServer",
                "ProgramRun", "weir",
            ]),
        tests(
            "Assurance/ChaosTests",
            [
                "ChangeLog", "Chaos", "DeviceModel", "Fuzzing", "KafkaServer", "LoadTools", "PostgresServer",
                "ProgramRun", "ServerShell", "SyncModel", "SyncWire", "TopicAudit",
            ]),
        tests("Assurance/MutantsTests", ["Mutants"]),
        tests("Assurance/WeirTestingTests", ["Fuzzing", "TestResources", "WeirClient", "WeirTesting"]),
        tests("Assurance/DemoTests", ["Demo", "Fuzzing", "ProgramRun", "ServerShell"]),
        tests(
            "Client/DeviceTests",
            [
                "Device", "EmbeddedPipeline", "Fuzzing", "ProgramRun", "SchemaFile", "Seeded", "WeirClient",
            ]),
        tests("Assurance/SimulationTests", ["Fuzzing", "ProgramRun", "Simulation"]),
        tests(
            "Assurance/VerificationTests",
            [
                "AsyncPrimitives", "ChangeLog", "Configuration", "FanOut", "MemoryChangeLog", "Observability",
                "Ordering", "PartitionSupervision", "RecordStore", "SQLite", "SQLiteRecordStore", "SyncModel",
                "SyncWire", "TestClocks", "Verification",
            ]),
        tests("weir/ArchitectureTests", []),
        tests(
            "weir/WeirTests",
            [
                "AsyncPrimitives", "ChangeLog", "CZlib", "Demo", "Device", "Digest", "Fuzzing", "IndexDamage",
                "JSONText", "Kafka", "KafkaChangeLog", "KafkaServer", "LoadTools", "Postgres", "PostgresServer",
                "ProgramRun", "Seeded", "ServerShell", "SQLite", "SQLiteChangeLog", "SyncModel", "SyncWire",
                "ThreadExecutor", "TopicAudit", "weir", "WeirClient", "YAML",
            ], exclude: ["Client/StandIns"]),
        support("Conformance/ChangeLogConformance", ["AsyncPrimitives", "ChangeLog"]),
        support("Conformance/DeviceRegistryConformance", ["DeviceRegistry", "SyncModel"]),
        support("Conformance/OwnerFileStoreConformance", ["OwnerFileStore", "SyncModel"]),
        support("Conformance/RecordStoreConformance", ["RecordStore", "Seeded", "SyncModel", "SyncWire"]),
        support(
            "Support/ScriptedFaces",
            ["DeviceRegistry", "FanOutLink", "Gateway", "HTTP", "JSON", "OwnerFileStore", "SyncModel"]),
        support("Support/Seeded"),
        support("Support/Fuzzing", ["Seeded"]),
        support("Support/TestClocks"),
        support("Support/ProgramRun", ["ServerShell"]),
        support("Support/MockKafka", ["ChangeLog", "Configuration", "CRdkafka", "KafkaChangeLog", "ThreadSanitizer"]),
        support("Support/TestSignals"),
        support("Support/TestResources"),
        support("Support/IndexDamage", ["SQLite"]),
        support("Support/TestAuthority", ["AsyncPrimitives", "HTTP", "TestSignals", "WebTokens"]),
        .executableTarget(
            name: "SignalProbe", dependencies: ["Observability", "ServiceLifecycle"], path: "Tests/Support/SignalProbe",
            swiftSettings: swift),
        cSupport("Support/FaultyDisk"),
        cSupport("Support/ThreadSanitizer"),
    ]
)

// A build of a part: the targets named, and what they need. Sanitizers check the libraries that call C alone.
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
    package.products.removeAll { product in
        switch product {
        case let library as Product.Library: !kept.isSuperset(of: library.targets)
        case let executable as Product.Executable: !kept.isSuperset(of: executable.targets)
        default: true
        }
    }
}

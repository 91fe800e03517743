import Foundation
import Kafka
import Synchronization

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// A broker that the tests start for themselves and can hold up and kill; it ends with them.
final class OwnBroker: Sendable {
    let servers: String
    private let start: @Sendable () -> pid_t
    private let process: Mutex<pid_t>

    private init(servers: String, start: @escaping @Sendable () -> pid_t) {
        self.servers = servers
        self.start = start
        process = Mutex(start())
    }

    /// Starts a broker of an installation of Kafka, in a folder of its own, and waits until it answers.
    static func start(home: String) -> OwnBroker {
        let folder = FileManager.default.temporaryDirectory.appending(path: "weir-kafka-\(UUID().uuidString)")
        let (port, controller) = (freePort(), freePort())
        let settings = """
            process.roles=broker,controller
            node.id=1
            controller.quorum.voters=1@127.0.0.1:\(controller)
            listeners=PLAINTEXT://127.0.0.1:\(port),CONTROLLER://127.0.0.1:\(controller)
            advertised.listeners=PLAINTEXT://127.0.0.1:\(port)
            listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
            controller.listener.names=CONTROLLER
            inter.broker.listener.name=PLAINTEXT
            log.dirs=\(folder.path)/data
            auto.create.topics.enable=false
            offsets.topic.num.partitions=4
            offsets.topic.replication.factor=1
            transaction.state.log.replication.factor=1
            transaction.state.log.min.isr=1
            group.initial.rebalance.delay.ms=0

            """
        let file = folder.appending(path: "server.properties")
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data(settings.utf8).write(to: file)
        } catch {
            preconditionFailure("a folder for the broker: \(error)")
        }
        let id = Data((0..<16).map { _ in UInt8.random(in: 0...255) }).base64EncodedString()
            .replacing("+", with: "A").replacing("/", with: "B").prefix(22)
        let output = folder.appending(path: "output").path
        var status: Int32 = 0
        let format = spawn(["\(home)/bin/kafka-storage.sh", "format", "-t", String(id), "-c", file.path], output)
        while waitpid(format, &status, 0) < 0, errno == EINTR {}
        precondition(status == 0, "the broker's folder was not made, see \(output)")
        let broker = OwnBroker(servers: "127.0.0.1:\(port)") {
            spawn(["\(home)/bin/kafka-server-start.sh", file.path], output)
        }
        let isFirst = all.withLock { all in
            all.append((broker, folder))
            return all.count == 1
        }
        if isFirst {
            atexit {
                for (broker, folder) in OwnBroker.all.withLock({ $0 }) {
                    broker.kill()
                    // The system's folder for what is temporary: what cannot be removed now goes with it.
                    _ = Result { try FileManager.default.removeItem(at: folder) }
                }
            }
        }
        waitUntilUp(broker.servers)
        return broker
    }

    /// The brokers that end with the process.
    private static let all = Mutex<[(broker: OwnBroker, folder: URL)]>([])

    /// Has it do nothing until ``resume()``.
    func pause() { signal(SIGSTOP) }

    /// Has it go on.
    func resume() { signal(SIGCONT) }

    /// Ends it at once, with whatever it is doing.
    func kill() {
        resume()
        signal(SIGKILL)
        var status: Int32 = 0
        process.withLock { process in while waitpid(process, &status, 0) < 0, errno == EINTR {} }
    }

    /// Starts it on what the killed one had on its disk.
    func startAgain() { process.withLock { $0 = start() } }

    private func signal(_ number: Int32) { process.withLock { process in _ = sendSignal(process, number) } }

    private static func spawn(_ arguments: [String], _ output: String) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        var environment = ProcessInfo.processInfo.environment
        if environment["KAFKA_HEAP_OPTS"] == nil { environment["KAFKA_HEAP_OPTS"] = "-Xmx512m" }
        environment["LOG_DIR"] = URL(fileURLWithPath: output).deletingLastPathComponent().path
        let argv = arguments.map { strdup($0) } + [nil]
        let envp = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in argv + envp { free(text) } }
        var process: pid_t = 0
        let code = posix_spawn(&process, arguments[0], &actions, nil, argv, envp)
        precondition(code == 0, "\(arguments[0]) did not start: \(String(cString: strerror(code)))")
        return process
    }

    private static func waitUntilUp(_ servers: String) {
        var properties = KafkaProperties()
        properties.set("bootstrap.servers", servers)
        properties.set("reconnect.backoff.max.ms", "200")
        do {
            let client = try KafkaClient(.producer, properties)
            // Kept: closing it needs a thread, and there is one of these.
            _ = Unmanaged.passRetained(client)
            _ = try client.describe(topic: "none", milliseconds: 60_000)
        } catch {
            // A broker that knows of no such topic is up.
            precondition(error.code == .unknownTopicOrPartition, "\(error)")
        }
    }

    /// A port that nobody has now.
    private static func freePort() -> UInt16 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                precondition(bind(descriptor, address, length) == 0, "there are free ports")
                getsockname(descriptor, address, &length)
            }
        }
        return UInt16(bigEndian: address.sin_port)
    }
}

/// The system's `kill`, which the broker's own hides.
private func sendSignal(_ process: pid_t, _ number: Int32) -> Int32 { kill(process, number) }

import ChangeLog
import Kafka
import Observability
import Synchronization

/// The clients that fetch partitions.
///
/// Readers share one; only several readers of the same partition need several clients.
final class FetchClients: Sendable {
    /// The right to fetch a partition with a client.
    struct Lease: Sendable {
        fileprivate let number: Int
        let service: ClientService
        fileprivate let partition: TopicPartition
    }

    private struct Client {
        let number: Int
        let service: ClientService
        /// The partitions that it fetches, each once.
        var partitions: Set<TopicPartition>
    }

    private struct State {
        var clients: [Client] = []
        var lastNumber = 0
    }

    /// The size of a client's queue for each partition.
    let queueBytes: Int
    private let properties: KafkaProperties
    private let logger: Logger
    private let state = Mutex(State())

    init(_ properties: ClientProperties, logger: Logger) {
        queueBytes = properties.queueBytes
        self.properties = properties.reader
        self.logger = logger
    }

    /// Returns a client that does not fetch the partition yet; creates one if all do.
    func lease(_ partition: TopicPartition) throws(ChangeLogError) -> Lease {
        let existing: Lease? = state.withLock { state in
            guard let index = state.clients.firstIndex(where: { !$0.partitions.contains(partition) }) else {
                return nil
            }
            state.clients[index].partitions.insert(partition)
            return Lease(
                number: state.clients[index].number, service: state.clients[index].service, partition: partition)
        }
        if let existing { return existing }
        let service = try ClientService(.consumer, properties, name: "weir-kafka-in", logger: logger)
        return state.withLock { state in
            state.lastNumber += 1
            state.clients.append(Client(number: state.lastNumber, service: service, partitions: [partition]))
            return Lease(number: state.lastNumber, service: service, partition: partition)
        }
    }

    /// Ends a lease, after the fetch was stopped; closes a client without leases.
    ///
    /// The first client is kept, since most logs are soon read again.
    func giveBack(_ lease: Lease) async {
        let unused: ClientService? = state.withLock { state in
            guard let index = state.clients.firstIndex(where: { $0.number == lease.number }) else { return nil }
            state.clients[index].partitions.remove(lease.partition)
            guard index > 0, state.clients[index].partitions.isEmpty else { return nil }
            return state.clients.remove(at: index).service
        }
        await unused?.close()
    }

    /// Closes every client, after all leases have ended.
    func close() async {
        let clients = state.withLock { state in
            defer { state.clients = [] }
            return state.clients
        }
        for client in clients { await client.service.close() }
    }
}

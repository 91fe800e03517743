import ChangeLog
import Kafka
import Observability
import Synchronization

/// The clients that fetch partitions: as many as there are readers of one and the same partition.
final class FetchClients: Sendable {
    /// A client that fetches, and the partition that it was asked for.
    struct Place: Sendable {
        fileprivate let number: Int
        let service: ClientService
        fileprivate let partition: TopicPartition
    }

    private struct Client {
        let number: Int
        let service: ClientService
        /// What it fetches; no partition twice.
        var partitions: Set<TopicPartition>
    }

    private struct State {
        var clients: [Client] = []
        var lastNumber = 0
    }

    /// How much of a partition a client holds.
    let queueBytes: Int
    private let properties: KafkaProperties
    private let logger: Logger
    private let state = Mutex(State())

    init(_ properties: ClientProperties, logger: Logger) {
        queueBytes = properties.queueBytes
        self.properties = properties.reader
        self.logger = logger
    }

    /// A client that does not fetch the partition yet, and does from now on.
    func take(_ partition: TopicPartition) throws(ChangeLogError) -> Place {
        let known: Place? = state.withLock { state in
            guard let place = state.clients.firstIndex(where: { !$0.partitions.contains(partition) }) else {
                return nil
            }
            state.clients[place].partitions.insert(partition)
            return Place(
                number: state.clients[place].number, service: state.clients[place].service, partition: partition)
        }
        if let known { return known }
        let service = try ClientService(.consumer, properties, name: "weir-kafka-in", logger: logger)
        return state.withLock { state in
            state.lastNumber += 1
            state.clients.append(Client(number: state.lastNumber, service: service, partitions: [partition]))
            return Place(number: state.lastNumber, service: service, partition: partition)
        }
    }

    /// Gives a partition back that is not fetched any more.
    ///
    /// The first client stays, since most logs are read again soon.
    func give(_ place: Place) async {
        let unused: ClientService? = state.withLock { state in
            guard let index = state.clients.firstIndex(where: { $0.number == place.number }) else { return nil }
            state.clients[index].partitions.remove(place.partition)
            guard index > 0, state.clients[index].partitions.isEmpty else { return nil }
            return state.clients.remove(at: index).service
        }
        await unused?.close()
    }

    /// Ends every client, when nothing is fetched any more.
    func close() async {
        let clients = state.withLock { state in
            defer { state.clients = [] }
            return state.clients
        }
        for client in clients { await client.service.close() }
    }
}

// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation
// What docs/client/recipes/GRDB.swift uses of GRDB, with the signatures of its version 7. Nothing of it runs.

public struct Configuration: Sendable {
    public enum BusyMode: Sendable {
        case immediateError
        case timeout(Double)
    }

    public var busyMode = BusyMode.immediateError
    public init() {}
    public mutating func prepareDatabase(_ setup: @escaping @Sendable (Database) throws -> Void) {}
}

public final class Database {
    public func execute(sql: String, arguments: StatementArguments = StatementArguments()) throws {}
    public func create(table: String, body: (TableDefinition) throws -> Void) throws {}
    public func notifyChanges(in region: some DatabaseRegionConvertible) throws {}
}

public struct StatementArguments: Sendable {
    public init() {}
}

public final class TableDefinition {
    @discardableResult public func primaryKey(_ name: String, _ type: ColumnType) -> ColumnDefinition {
        ColumnDefinition()
    }
    @discardableResult public func column(_ name: String, _ type: ColumnType? = nil) -> ColumnDefinition {
        ColumnDefinition()
    }

    public struct ColumnType: Sendable {
        public static let text = ColumnType()
    }
}

public final class ColumnDefinition {
    @discardableResult public func notNull() -> Self { self }
}

public protocol DatabaseRegionConvertible: Sendable {}

public struct Row: Sendable {}

public struct Table<RowDecoder>: DatabaseRegionConvertible {}

extension Table where RowDecoder == Row {
    public init(_ tableName: String) { self.init() }
}

public protocol DatabaseReader: AnyObject, Sendable {}

public final class DatabasePool: DatabaseReader {
    public init(path: String, configuration: Configuration = Configuration()) throws {}
    public func read<T: Sendable>(_ value: @escaping @Sendable (Database) throws -> T) async throws -> T {
        preconditionFailure("a stand-in")
    }
    public func write<T: Sendable>(_ updates: @escaping @Sendable (Database) throws -> T) async throws -> T {
        preconditionFailure("a stand-in")
    }
}

public struct DatabaseMigrator: Sendable {
    public init() {}
    public mutating func registerMigration(
        _ identifier: String, migrate: @escaping @Sendable (Database) throws -> Void
    ) {}
    public func migrate(_ writer: DatabasePool) throws {}
    public func hasCompletedMigrations(_ db: Database) throws -> Bool { true }
}

public protocol FetchableRecord {}
public protocol PersistableRecord {
    func insert(_ db: Database) throws
}

extension PersistableRecord {
    public func insert(_ db: Database) throws {}
    public static func order(_ orderings: Column...) -> QueryInterfaceRequest<Self> { QueryInterfaceRequest() }
}

public struct Column: Sendable {
    public init(_ name: String) {}
}

public struct QueryInterfaceRequest<RowDecoder> {
    public func fetchAll(_ db: Database) throws -> [RowDecoder] { [] }
}

extension String {
    public static func fetchSet(
        _ db: Database, sql: String, arguments: StatementArguments = StatementArguments()
    ) throws -> Set<String> { [] }
}

public enum ValueObservation {
    public static func tracking<Value: Sendable>(
        _ fetch: @escaping @Sendable (Database) throws -> Value
    ) -> Observation<Value> { Observation() }

    public struct Observation<Value: Sendable> {
        public func values(in reader: some DatabaseReader) -> AsyncValueObservation<Value> { AsyncValueObservation() }
    }
}

public struct AsyncValueObservation<Element: Sendable>: AsyncSequence {
    public struct AsyncIterator: AsyncIteratorProtocol {
        public mutating func next() async throws -> Element? { nil }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator() }
}

// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation
// What docs/client/recipes/SQLiteSwift.swift uses of SQLite.swift, with the signatures of its version 0.15. Nothing of it runs.

public final class Connection {
    public init(_ filename: String = "", readonly: Bool = false) throws {}
    public var busyTimeout: Double = 0
    public func execute(_ sql: String) throws {}
    @discardableResult public func run(_ statement: String, _ bindings: String?...) throws -> String { "" }
    @discardableResult public func run(_ query: Insert) throws -> Int64 { 0 }
    public func prepare(_ query: QueryType) throws -> AnySequence<Row> { AnySequence([]) }
}

public protocol QueryType {}

public struct Table: QueryType {
    public init(_ name: String, database: String? = nil) {}
    public func create(
        temporary: Bool = false, ifNotExists: Bool = false, block: (TableBuilder) -> Void
    ) -> String { "" }
    public func insert(_ value: Setter, _ more: Setter...) -> Insert { Insert() }
    public func order<Value>(_ by: Expression<Value>...) -> Self { self }
}

public final class TableBuilder {
    public func column<Value>(_ name: Expression<Value>, primaryKey: Bool) {}
    public func column<Value>(_ name: Expression<Value>) {}
}

public struct Expression<Datatype> {
    public init(_ identifier: String) {}
}

public struct Insert {}
public struct Setter {}

infix operator <- : AssignmentPrecedence
public func <- <Value>(column: Expression<Value>, value: Value) -> Setter { Setter() }

public struct Row {
    public subscript<Value>(column: Expression<Value>) -> Value { preconditionFailure("a stand-in") }
}

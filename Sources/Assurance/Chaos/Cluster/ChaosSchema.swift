import SchemaFile
import SyncModel

/// The tables of a chaos run: every policy, a default, a required column, and types whose canonical form may differ from
/// what is sent.
enum ChaosSchema {
    static let text = """
        tables:
          note:
            columns:
              title: { type: text, nullable: false, length: 40 }
              count: { type: integer, nullable: false, default: 0 }
              price: decimal(8,2)
          status:
            policy: lastWriteWins
            columns:
              done: boolean
              label: text
          account:
            policy: checkBase
            columns:
              balance: integer
              holder: text

        """

    static func read() throws -> Schema { Schema(tables: try SchemaFile.tables(from: Array(text.utf8))) }

    /// The expression of a column's canonical JSON in SQL.
    static func json(_ column: Column) -> String {
        let value =
            switch column.type {
            case .text: "to_json(\(column.name))::text"
            case .decimal: "to_json(\(column.name)::text)::text"
            default: "\(column.name)::text"
            }
        return "coalesce(\(value), 'null')"
    }
}

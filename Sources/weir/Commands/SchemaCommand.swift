import Commands
import EmbeddedPipeline
import SyncModel
import SyncWire

/// `weir schema check FILE`.
enum SchemaCommand {
    static let command = Command(
        "schema", "Work with schema files.",
        subcommands: [
            Command(
                "check", "Check a schema file.", Weir.Action { check($0.arguments[0]) },
                arguments: [.one("FILE", "The schema file.")])
        ])

    /// Prints what a schema file declares, or what is wrong with it and where.
    private static func check(_ path: String) -> ExitCode {
        do {
            let schema = try Schema(declaring: SchemaFiles.read(path))
            let version = SchemaVersion(ordinal: 1, of: schema)
            Output.write("\(path): \(schema.tables.count) tables, version \(version.hash)")
            for (table, rank) in zip(schema.tables, schema.ranks).sorted(by: { $0.1 < $1.1 }) {
                Output.write("  \(table.name): \(table.columns.count) columns, \(table.policy.rawValue), rank \(rank)")
            }
            return .success
        } catch {
            Output.complain("\(error)")
            return .failure
        }
    }
}

import Commands
import Configuration
import SchemaFile
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

/// Schema files on disk.
enum SchemaFiles {
    /// The largest file that is read: 500 tables of 250 columns fit well.
    private static let maximumBytes = 16 << 20

    /// Why a schema file cannot be used, each line with the file's name.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    static func read(_ path: String, limits: OutcomeLimits = OutcomeLimits()) throws(Failure) -> [Table] {
        let bytes: [UInt8]
        do {
            bytes = try ConfigurationSources.contents(of: path, limit: maximumBytes)
        } catch {
            throw Failure(description: "the schema file \(path) cannot be read: \(error.message)")
        }
        do {
            return try SchemaFile.tables(from: bytes, limits: limits)
        } catch {
            let lines = error.description.split(separator: "\n").map { "\(path):\($0)" }
            throw Failure(description: lines.joined(separator: "\n"))
        }
    }
}

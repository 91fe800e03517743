import Configuration
import SchemaFile
import SyncModel

/// Schema files on disk.
package enum SchemaFiles {
    /// The largest file that is read: 500 tables of 250 columns fit well.
    private static let maximumBytes = 16 << 20

    /// Why a schema file cannot be used, each line with the file's name.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    package static func read(_ path: String, limits: OutcomeLimits = OutcomeLimits()) throws(Failure) -> [Table] {
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

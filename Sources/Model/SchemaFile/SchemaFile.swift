import SyncModel
import YAML

/// The schema file: the tables that devices sync, as YAML.
///
///     tables:
///       person:
///         policy: lastSyncWins
///         columns:
///           name: { type: text, nullable: false, length: 200 }
///           birthday: date
package enum SchemaFile {
    /// Reads a file into tables that are a valid schema by themselves.
    ///
    /// - Parameters:
    ///   - bytes: the file.
    ///   - limits: the maximum sizes of a value and of a row, defaults included.
    /// - Throws: ``SchemaFileError`` with every problem and its line.
    package static func tables(
        from bytes: [UInt8], limits: OutcomeLimits = OutcomeLimits()
    ) throws(SchemaFileError) -> [Table] {
        let document: YAMLDocument
        do {
            document = try YAMLDocument(bytes)
        } catch {
            throw SchemaFileError([.init(position: error.position, message: error.message)])
        }
        var reader = SchemaFileReader(limits)
        let tables = reader.read(document)
        if reader.problems.isEmpty {
            for problem in Schema.problems(in: tables) { reader.add(problem) }
        }
        guard reader.problems.isEmpty else { throw SchemaFileError(reader.problems) }
        return tables
    }
}

/// A schema file was rejected.
///
/// Lists every problem in the order of the lines.
package struct SchemaFileError: Error, Sendable, Hashable, CustomStringConvertible {
    package struct Problem: Sendable, Hashable {
        /// `nil` for a problem of the whole file.
        package let position: YAMLPosition?
        package let message: String
    }

    /// At least one.
    package let problems: [Problem]

    init(_ problems: [Problem]) {
        self.problems = problems.sorted { left, right in
            let (left, right) = (left.position, right.position)
            return (left?.line ?? 0, left?.column ?? 0) < (right?.line ?? 0, right?.column ?? 0)
        }
    }

    /// One line per problem, `line:column: message`.
    package var description: String {
        problems.map { problem in problem.position.map { "\($0): \(problem.message)" } ?? problem.message }
            .joined(separator: "\n")
    }
}

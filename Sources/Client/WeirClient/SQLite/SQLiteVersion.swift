import CWeirSQLite

/// A version of SQLite's library.
package struct SQLiteVersion: Sendable {
    /// As `sqlite3_libversion_number` has it: 3035000 is 3.35.0.
    package let number: Int32

    package init(number: Int32) { self.number = number }

    /// The library that the process has, which may be another one than at build time; tests have other versions.
    @TaskLocal package static var loaded = SQLiteVersion(number: sqlite3_libversion_number())

    /// The first one whose UPSERT, window functions and ALTER TABLE do what Weir's statements need.
    private static let least = SQLiteVersion(number: 3_035_000)

    /// - Throws: `WeirError.outdatedSQLite`.
    package func requireSupported() throws {
        guard number >= Self.least.number else { throw WeirError.outdatedSQLite(version: name, least: Self.least.name) }
    }

    private var name: String { "\(number / 1_000_000).\(number / 1000 % 1000).\(number % 1000)" }
}

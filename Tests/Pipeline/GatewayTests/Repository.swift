import Configuration

/// Files of the repository that tests hold the code against.
enum Repository {
    /// The bytes of a file, named from the repository's root.
    static func bytes(_ path: String, here: String = #filePath) throws -> [UInt8] {
        let root = here.split(separator: "/", omittingEmptySubsequences: false).dropLast(4).joined(separator: "/")
        return try ConfigurationSources.contents(of: "\(root)/\(path)", limit: 1 << 20)
    }

    /// The text of a file, named from the repository's root.
    static func text(_ path: String) throws -> String { String(decoding: try bytes(path), as: UTF8.self) }
}

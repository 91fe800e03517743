import WebTokens

/// Keys that never change: the secret of a development server.
package struct FixedKeys: KeySource {
    private let set: KeySet

    package init(_ set: KeySet) { self.set = set }

    package var name: String { "the configuration" }

    package func keys() async throws -> PublishedKeys { PublishedKeys(set) }

    package func close() async {}
}

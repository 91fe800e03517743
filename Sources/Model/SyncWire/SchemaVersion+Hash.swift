import Digest
import SyncModel

extension SchemaVersion {
    /// The hash by which messages and clients name a schema: the first 32 lower-case hexadecimal digits of the SHA-256 of
    /// its encoding, in which everything that is declared counts, order included.
    package static func hash(of schema: Schema) -> String {
        hexadecimal(SHA256.digest(of: schema.encode()).prefix(16))
    }

    /// The version with this number of these tables.
    package init(ordinal: Int, of schema: Schema) {
        self.init(ordinal: ordinal, hash: Self.hash(of: schema))
    }
}

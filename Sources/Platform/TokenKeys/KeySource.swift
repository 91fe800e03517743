import WebTokens

/// Where the keys of an issuer come from.
package protocol KeySource: Sendable {
    /// Its URL or path, for an operator.
    var name: String { get }

    /// Reads the keys.
    ///
    /// - Throws: an error whose description says to an operator what is wrong.
    func keys() async throws -> PublishedKeys

    /// Releases what the source holds; it is not used any more.
    func close() async
}

/// Keys as their source published them.
package struct PublishedKeys: Sendable {
    package let set: KeySet
    /// How long the source lets them be kept; `nil`: it does not say.
    package let maximumAge: Duration?

    package init(_ set: KeySet, maximumAge: Duration? = nil) {
        self.set = set
        self.maximumAge = maximumAge
    }
}

/// The forms in which issuers publish their keys.
package enum KeyFormat: Sendable {
    /// A JWK set.
    case jwks
    /// An object of X.509 certificates in PEM by key name, as Firebase publishes it.
    case certificates

    package func keys(in document: [UInt8]) throws(KeySetError) -> KeySet {
        switch self {
        case .jwks: try KeySet(jwks: document)
        case .certificates: try KeySet(certificates: document)
        }
    }
}

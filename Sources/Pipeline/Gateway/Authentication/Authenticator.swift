import HTTP
import SyncModel

/// The authenticated caller and its grants.
package struct Caller: Sendable, Hashable {
    package let syncID: SyncID
    /// Its own first, then those of linked owners in the order given; each owner once.
    package let grants: [Grant]
    /// The remaining validity of its credentials, at whose end its long polls and event streams end; `nil`: unlimited.
    package let validFor: Duration?
    /// The only device that its credentials are for; `nil`: any.
    package let device: KnowledgeID?
    /// What its credentials allow.
    package let scope: AccessScope

    /// A caller may write its own data; of several links to one owner the first counts.
    package init(
        syncID: SyncID, links: [Grant] = [], validFor: Duration? = nil, device: KnowledgeID? = nil,
        scope: AccessScope = .all
    ) {
        self.syncID = syncID
        self.validFor = validFor
        self.device = device
        self.scope = scope
        var grants = [Grant(owner: syncID, access: .write)]
        if !links.isEmpty {
            var seen: Set<SyncID> = [syncID]
            grants += links.filter { seen.insert($0.owner).inserted }
        }
        self.grants = grants
    }

    private init(_ caller: Caller, validFor: Duration) {
        syncID = caller.syncID
        grants = caller.grants
        self.validFor = validFor
        device = caller.device
        scope = caller.scope
    }

    /// The same caller at another time.
    func valid(for time: Duration) -> Caller { Caller(self, validFor: time) }

    package func mayRead(_ owner: SyncID) -> Bool {
        scope.contains(.read) && grants.contains { $0.owner == owner }
    }

    /// - Throws: ``ProblemCode/forbidden`` where its credentials do not allow the route's requests.
    func check(_ route: Route) throws(Problem) {
        let needed = route.scope
        if route == .batch, !scope.isDisjoint(with: needed) { return }
        try check(needed)
    }

    /// - Throws: ``ProblemCode/forbidden`` where its credentials do not allow all of this.
    func check(_ needed: AccessScope) throws(Problem) {
        guard scope.isSuperset(of: needed) else {
            var problem = Problem(.forbidden, "the credentials do not allow this: their scope is too small")
            problem.headers = [HTTPField("WWW-Authenticate", "Bearer error=\"insufficient_scope\"")]
            throw problem
        }
    }

    /// - Throws: ``ProblemCode/wrongDevice`` where its credentials are for another device and do not say that they allow to manage
    ///   all: who finds a device must not be able to shut out the others.
    func checkManages(_ knowledgeID: KnowledgeID) throws(Problem) {
        if !scope.contains(.devices) { try check(knowledgeID) }
    }

    /// - Throws: ``ProblemCode/wrongDevice`` where its credentials are for another device.
    func check(_ knowledgeID: KnowledgeID) throws(Problem) {
        guard device == nil || device == knowledgeID else {
            throw Problem(.wrongDevice, "the credentials are for another device than knowledgeId names")
        }
    }
}

/// What credentials allow, of what their caller's grants allow.
package struct AccessScope: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Pulls, event streams and the rows of conflicts.
    package static let read = AccessScope(rawValue: 1)
    /// Uploads.
    package static let write = AccessScope(rawValue: 2)
    /// Naming and revoking other devices than the one that the credentials are for.
    package static let devices = AccessScope(rawValue: 4)
    package static let all: AccessScope = [.read, .write, .devices]
}

/// What is known of a request's caller at once.
package enum CallerLookup: Sendable {
    case known(Caller)
    /// The caller is known later: what its credentials are checked with is being fetched.
    case awaited(@Sendable () async throws -> Caller)
}

/// A caller that was found when a request's header had arrived; it is believed for the body that follows at once.
struct RecentCaller: Sendable {
    /// Within it neither the end of credentials nor the withdrawal of a key is noticed.
    private static let period = Duration.seconds(1)

    private let caller: Caller
    private let time: Duration

    /// `nil` for a caller that is not known yet.
    init?(_ lookup: CallerLookup, at time: Duration) {
        guard case .known(let caller) = lookup else { return nil }
        self.caller = caller
        self.time = time
    }

    /// `nil` where the credentials must be checked again.
    func caller(at now: Duration) -> Caller? { now - time < Self.period ? caller : nil }
}

/// Authenticates requests.
///
/// Called on the HTTP server's threads: it must not block.
package protocol Authenticator: Sendable {
    /// Whether callers state their identity without proof; the gateway then listens on loopback only.
    var trustsEveryCaller: Bool { get }

    /// - Throws: ``ProblemCode/unauthenticated`` with the header `WWW-Authenticate` (RFC 9110, 11.6.1), or another
    ///   problem.
    func caller(of request: HTTPRequest) throws(Problem) -> CallerLookup
}

/// How long keys are kept, and what may wait for newer ones.
package struct IssuerKeysSettings: Sendable {
    /// Keys are read again after this time even if their source lets them be kept longer: so long a key that the source has
    /// withdrawn may be accepted.
    package var maximumAge: Duration = .seconds(900)
    /// Keys are kept at least this long, whatever their source says, unless a token names one that is not known.
    package var minimumAge: Duration = .seconds(60)
    /// While the source fails, its last keys are used for this long.
    package var staleLimit: Duration = .seconds(86_400)
    /// The least time from one reading to the next that an unknown key causes.
    package var cooldown: Duration = .seconds(30)
    /// Requests that may wait for newer keys.
    package var maximumWaiting = 1000
    /// The pauses after a failure: the first, and the longest.
    package var retryDelays: ClosedRange<Duration> = .seconds(1)...(.seconds(60))

    package init() {}
}

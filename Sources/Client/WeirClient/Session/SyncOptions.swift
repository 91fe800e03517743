import Foundation

/// How Weir syncs; the defaults are for apps.
public struct SyncOptions: Sendable {
    /// Sends the requests.
    public var transport: any Transport
    /// How often Weir looks at most whether another connection has written to the file: it reads SQLite's `data_version`.
    ///
    /// The system tells it of writes to the file, so an idle app costs no looks; where it cannot, Weir looks as often as this says. A look
    /// takes microseconds and no lock that an app could notice. Without looks (`nil`) Weir learns of writes by ``Weir/nudge()`` alone.
    public var writeCheck: Duration? = .milliseconds(500)
    /// How long after a write a session begins, so that several writes are sent together.
    public var debounce: Duration = .milliseconds(100)
    /// The time between sessions without another reason, while the server's event stream cannot be read.
    public var interval: Duration = .seconds(300)
    /// How much is kept of changes that were not stored, and whose end is known: ``Weir/conflictLog(limit:)``.
    public var conflictLog = ConflictLogLimit()
    /// This device's name at the server, for servers whose tokens are for one device.
    ///
    /// It is used when a file is attached for the first time, and for one that turns out to be a copy (``installMarker``, or the server says
    /// so), unless the file has had it before; otherwise a new uuid. ``Weir/knowledgeID()`` is the one that the file has.
    public var knowledgeID: String?
    /// Where a marker of this installation of the app is kept, beside the database for example; it is created, and must not be part of backups.
    ///
    /// With it a database file that was restored from a backup, or copied, is known when it is attached, and syncs as another device: its rows
    /// and its pending edits stay. Without one it is known when the server rejects a batch. Several files, one for each account, can have the
    /// same marker.
    public var installMarker: URL?
    /// What becomes of rows whose parents are missing.
    public var orphans = OrphanPolicy.park
    /// The most rows of a page.
    package var pageRows = 5000
    /// How many rows are written in one transaction.
    package var slice = Applying.slice

    /// Begins to watch a file for writes; `nil` if the system cannot.
    package var watchFile: @Sendable (_ path: String) -> Runner.FileEvents? = { path in
        FileWatch(path: path).map { watch in Runner.FileEvents(watch.events) { watch.end() } }
    }

    package var clock = RunClock(ContinuousClock())
    /// The time that is shown, and that leases of several processes go by.
    package var now: @Sendable () -> Date = { Date() }
    package var random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()

    /// Makes options with the defaults.
    ///
    /// - Parameter transport: by default requests are sent with `URLSession`.
    public init(transport: any Transport = URLSessionTransport()) { self.transport = transport }

    var schedule: AttemptSchedule.Settings {
        var settings = AttemptSchedule.Settings()
        settings.debounce = debounce
        settings.interval = interval
        return settings
    }
}

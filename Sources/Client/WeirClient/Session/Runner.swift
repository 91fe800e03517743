/// Runs sessions while the app runs: after writes, when the server has something, after failures, and from time to time.
package actor Runner {
    /// What a runner does, and is notified of.
    package struct Work: Sendable {
        /// Runs one session; whether something that could not be sent is left.
        ///
        /// - Throws: `SyncError`; `LeaseHeld`; `CancellationError`.
        let sync: @Sendable () async throws -> Bool
        /// Whether another connection has written something to be sent since the last call.
        let hasWrites: @Sendable () async throws -> Bool
        /// Begins to watch the file for writes; `nil` if it must be looked at from time to time.
        let watchFile: @Sendable () async -> FileEvents?
        /// Reads the server's event stream until it ends, and passes whether an event names rows that the device lacks; also for what says
        /// only that the server is there.
        let watch: @Sendable (_ event: @escaping @Sendable (_ hasMoved: Bool) async -> Void) async throws -> Void
        /// Is notified when the next session is due; `nil`: when there is a reason.
        let isIdle: @Sendable (_ until: Duration?) async -> Void

        package init(
            sync: @escaping @Sendable () async throws -> Bool,
            hasWrites: @escaping @Sendable () async throws -> Bool,
            watchFile: @escaping @Sendable () async -> FileEvents? = { nil },
            watch: @escaping @Sendable (@escaping @Sendable (Bool) async -> Void) async throws -> Void,
            isIdle: @escaping @Sendable (Duration?) async -> Void
        ) {
            self.sync = sync
            self.hasWrites = hasWrites
            self.watchFile = watchFile
            self.watch = watch
            self.isIdle = isIdle
        }
    }

    /// Writes to the file, until the end is asked for.
    package struct FileEvents: Sendable {
        let events: AsyncStream<Void>
        let end: @Sendable () -> Void

        package init(_ events: AsyncStream<Void>, end: @escaping @Sendable () -> Void) {
            (self.events, self.end) = (events, end)
        }
    }

    private let work: Work
    private let clock: RunClock
    /// How often the file is looked at for writes at most, and where it cannot be watched; `nil`: never.
    private let writeCheck: Duration?
    private var schedule: AttemptSchedule
    private var watchBackoff: Backoff
    /// Waits for the next session's time; cancelled when that changes.
    private var sleeper: Task<Void, any Error>?
    /// Waits until the event stream is opened again; cancelled when the network or the server seems to be there.
    private var watchSleeper: Task<Void, any Error>?

    package init(
        _ work: Work, settings: AttemptSchedule.Settings = .init(), writeCheck: Duration?, clock: RunClock,
        random: any RandomNumberGenerator & Sendable
    ) {
        self.work = work
        self.clock = clock
        self.writeCheck = writeCheck
        schedule = AttemptSchedule(settings, random: random)
        watchBackoff = Backoff(random: random)
    }

    /// Runs until the task is cancelled.
    package func run() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.attempt() }
            group.addTask { await self.watch() }
            if let writeCheck { group.addTask { await self.noticeWrites(writeCheck) } }
        }
    }

    /// Something has happened.
    package func record(_ event: AttemptSchedule.Event) {
        schedule.record(event, at: clock.now())
        sleeper?.cancel()
        switch event {
        case .nudged, .succeeded: watchSleeper?.cancel()
        default: break
        }
    }

    // MARK: Sessions

    private func attempt() async {
        while !Task.isCancelled {
            let due = schedule.next
            if let due, due <= clock.now() {
                schedule.record(.began, at: clock.now())
                guard let end = await session() else { return }
                record(end)
            } else {
                await work.isIdle(due)
                // It may have changed meanwhile.
                if schedule.next == due { await sleep(until: due) { sleeper = $0 } }
            }
        }
    }

    /// How a session has ended; `nil` if it was cancelled.
    private func session() async -> AttemptSchedule.Event? {
        do {
            return .succeeded(isPending: try await work.sync())
        } catch is CancellationError {
            // Attaching again, for instance, ends a session and not the runner.
            return Task.isCancelled ? nil : .failed(SyncError(.unreachable, "the session was ended"))
        } catch is LeaseHeld {
            return .leased
        } catch {
            return .failed(SyncError(error))
        }
    }

    /// Waits until a time, or until the waiting is cancelled.
    private func sleep(until time: Duration?, as keep: (Task<Void, any Error>) -> Void) async {
        let clock = clock
        let sleeper = Task {
            guard let time else { return try await Self.never() }
            try await clock.sleep(time)
        }
        keep(sleeper)
        await withTaskCancellationHandler {
            // It ends by the time, or since it was cancelled: who waits finds out what follows.
            _ = await sleeper.result
        } onCancel: {
            sleeper.cancel()
        }
    }

    /// Waits for the task's cancellation.
    private static func never() async throws {
        for await _ in AsyncStream<Never>.makeStream().stream {}
    }

    // MARK: Reasons

    /// How long after an event of the file it is looked at first: most commits can be seen by then.
    private static let commit: Duration = .milliseconds(20)
    /// How often it is looked at after the last event, with growing pauses: a commit can be seen only after its sync to disk.
    private static let laterLooks = 3

    private func noticeWrites(_ interval: Duration) async {
        var later: Task<Void, any Error>?
        defer { later?.cancel() }
        do {
            guard let file = await work.watchFile() else {
                while true { try await look(in: interval) }
            }
            defer { file.end() }
            // What was committed before the watch has begun.
            try await lookForWrites()
            for await _ in file.events {
                later?.cancel()
                try await look(in: Self.commit)
                later = Task {
                    for number in 0..<Self.laterLooks { try await look(in: interval * (1 << (2 * number))) }
                }
                try await clock.sleep(clock.now() + interval)
            }
        } catch {
            // The task was cancelled.
        }
    }

    private func look(in pause: Duration) async throws {
        try await clock.sleep(clock.now() + pause)
        try await lookForWrites()
    }

    private func lookForWrites() async throws {
        if try await hasWrites() { record(.localWrite) }
    }

    private func hasWrites() async throws -> Bool {
        do {
            return try await work.hasWrites()
        } catch is CancellationError {
            throw CancellationError()
        } catch {
            // The file could not be read. A session reports why, and repeats it at its own pace.
            return true
        }
    }

    private func watch() async {
        var wasRejected = false
        while !Task.isCancelled {
            let error: SyncError
            do {
                try await work.watch { await self.received(hasMoved: $0) }
                // A stream ends with its token, or with the server.
                error = SyncError(.unreachable, "the event stream has ended")
            } catch let other {
                error = SyncError(other)
            }
            record(.watching(false))
            // The next connection has another token.
            if error.kind == .unauthenticated, !wasRejected {
                wasRejected = true
                continue
            }
            wasRejected = false
            let allowed = clock.now() + .seconds(error.retryAfter ?? 0)
            await sleep(until: clock.now() + watchBackoff.pause(after: error)) { watchSleeper = $0 }
            do {
                // Also where something has ended the pause.
                try await clock.sleep(allowed)
            } catch {
                return
            }
        }
    }

    private func received(hasMoved: Bool) async {
        watchBackoff.reset()
        record(.watching(true))
        if hasMoved { record(.serverMoved) }
        // Without a wake-up of its own: should a commit have come later than all looks at the file.
        guard writeCheck != nil else { return }
        do {
            try await lookForWrites()
        } catch {
            // The task was cancelled.
        }
    }
}

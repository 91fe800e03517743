import Foundation

/// Syncing while the app runs, or once.
extension Weir {
    /// Syncs once: sends what is pending, and receives what is new, until neither is left.
    ///
    /// It waits for a session that is under way, also for one of another process. Everything that was committed before the call
    /// is sent with it.
    ///
    /// - Parameter deadline: the session is ended at this time, where it is; the next one continues there. For background tasks.
    /// - Returns: whether the session has come to its end.
    /// - Throws: `SyncError`; `WeirError`; `CancellationError`.
    @discardableResult
    public func sync(until deadline: Date? = nil) async throws -> Bool {
        let options = try attached.options
        guard let deadline else {
            try await syncOnce(options)
            return true
        }
        let end = options.clock.now() + .seconds(deadline.timeIntervalSince(options.now()))
        return try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await self.syncOnce(options)
                return true
            }
            group.addTask {
                try await options.clock.sleep(end)
                return false
            }
            defer { group.cancelAll() }
            return try await group.next() ?? false
        }
    }

    private func syncOnce(_ options: SyncOptions) async throws {
        while true {
            do {
                _ = try await session()
                return
            } catch is LeaseHeld {
                statuses.update { $0.phase = .waiting }
                try await options.clock.sleep(options.clock.now() + options.schedule.leaseCheck)
            }
        }
    }

    /// Runs a session after the one that is under way.
    private func session() async throws -> Bool {
        while let session = currentSession {
            // However it has ended, the next one may begin.
            do { _ = try await valueOrCancellation(of: session) } catch { try Task.checkCancellation() }
        }
        try Task.checkCancellation()
        let session = Task {
            defer { endedSession() }
            return try await runSession()
        }
        currentSession = session
        return try await withTaskCancellationHandler {
            try await session.value
        } onCancel: {
            session.cancel()
        }
    }

    private func endedSession() {
        currentSession = nil
        let phase: SyncStatus.Phase = runner == nil ? .stopped : .idle
        statuses.update { $0.phase = phase }
    }

    /// Cancels the session that is under way, and waits for its end.
    func endSession() async {
        while let session = currentSession {
            session.cancel()
            _ = await session.result
        }
    }

    // MARK: While the app runs

    /// Syncs from now on, until ``stop()``: at once, after writes, when the server has something new, after failures with
    /// growing pauses, and from time to time.
    ///
    /// Writes of all connections and processes are noticed, since the file is watched (``SyncOptions/writeCheck``). What the server has is
    /// known by its event stream. A failure is in ``status`` and not thrown; whatever is pending is tried again.
    ///
    /// - Throws: `WeirError` if the file is not attached to an account.
    public func start() throws {
        _ = try attached
        isStarted = true
        startRunner()
    }

    /// Begins what ``start()`` has asked for, if nothing keeps it from it.
    func startRunner() {
        guard isStarted, runner == nil, !isSuspended, !isDetaching, !isClosed else { return }
        guard let options = attachment?.options else { return }
        let work = Runner.Work { [weak self] in
            guard let self else { throw CancellationError() }
            return try await self.session()
        } hasWrites: { [weak self] in
            try await self?.hasNewWrites() ?? false
        } watchFile: { [path] in
            options.watchFile(path)
        } watch: { [weak self] event in
            let weir = { @Sendable [weak self] in self }
            try await Weir.watch(weir, event)
        } isIdle: { [weak self] due in
            await self?.showIdle(due)
        }
        let runner = Runner(
            work, settings: options.schedule, writeCheck: options.writeCheck, clock: options.clock,
            random: options.random)
        self.runner = (runner, Task { await runner.run() })
        statuses.update { $0.phase = .idle }
    }

    /// Ends what ``start()`` has begun; changes are still captured.
    public func stop() async {
        isStarted = false
        await stopRunner()
        // The app may have started it again meanwhile.
        startRunner()
    }

    func stopRunner() async {
        guard let runner else { return }
        runner.task.cancel()
        await runner.task.value
        // Another call may have ended it before, after which the app has started another one.
        guard self.runner?.runner === runner.runner else { return }
        self.runner = nil
        statuses.update { $0.phase = .stopped }
    }

    /// Begins a session soon, also where Weir waits after a failure: after a write, or when the network has come back.
    ///
    /// Without ``start()`` it brings observed queries up to date, and no more.
    public func nudge() async {
        changes.update { $0 += 1 }
        await runner?.runner.record(.nudged)
    }

    /// Ends all use of the file until ``resume()``, before the system suspends the app.
    ///
    /// When it returns, Weir has no connection to the file and no lock, for which iOS would end an app whose file is in a folder of
    /// an app group. Other calls throw `WeirError.suspended` until then. Triggers capture what other connections write.
    public func suspend() async {
        isSuspended = true
        // A session of the app's own keeps the runner waiting.
        runner?.task.cancel()
        await endSession()
        await stopRunner()
        // The app may have been resumed meanwhile.
        guard isSuspended else { return startRunner() }
        closeTheFile()
        statuses.update { $0.phase = .suspended }
    }

    /// Opens the file again after ``suspend()``, and syncs if Weir was started.
    ///
    /// - Throws: `WeirError`; then the call can be repeated.
    public func resume() throws {
        guard isSuspended else { return }
        // A suspension that is still under way has not closed it, and does not any more.
        if !isFileOpen { try openTheFile() }
        isSuspended = false
        changes.update { $0 += 1 }
        statuses.update { $0.phase = .stopped }
        startRunner()
        askResolvers()
    }

    private func showIdle(_ due: Duration?) {
        let hasFailed = statuses.current.lastError != nil || isLeasedElsewhere
        statuses.update { status in
            if status.phase != .suspended { status.phase = hasFailed && due != nil ? .waiting : .idle }
        }
    }

    // MARK: Reasons to sync

    /// Whether something was written since the last call that is to be sent.
    private func hasNewWrites() throws -> Bool {
        let file = try openFile
        let version = try file.database.foreignVersion
        guard version != dataVersion else { return false }
        changes.update { $0 += 1 }
        let found = try PendingMark(of: file)
        // Another process may have found something, or decided it.
        try showKept()
        // Only now, so that a look that fails is repeated.
        dataVersion = version
        defer { pendingMark = found }
        guard found.isLogged || found != pendingMark else { return false }
        let rows = try file.pendingRows()
        statuses.update { $0.pendingRows = rows }
        return rows > 0
    }
}

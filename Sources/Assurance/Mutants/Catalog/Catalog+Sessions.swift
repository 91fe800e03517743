extension Catalog {
    private static let session = "Session/Session.swift"
    private static let answering = "Session/Answering.swift"
    private static let lease = "Session/Lease.swift"
    private static let schedule = "Session/AttemptSchedule.swift"

    /// When the client sends and pulls.
    static let sessions: [Mutant] = [
        .client(
            .statement, "a lease is taken from its holder", in: lease, "throw LeaseHeld()", tests: "LeaseTests"),
        .client(
            .expression, "a lease of a clock that was set back is waited for", in: lease,
            "expiry <= time + Self.duration", "true", within: "time < expiry, expiry <= time + Self.duration",
            tests: "LeaseTests"),
        .client(
            .expression, "the lease of a process that is gone is waited for", in: lease, "exists(held)",
            "true", tests: "LeaseTests"),
        .client(
            .statement, "the lease is not given back", in: session, "release(attachment.lease)",
            tests: "RunningTests", "DetachingTests"),
        .client(
            .expression, "a batch is frozen though the outcome of the last one is not known", in: session,
            "!record.mustDrain && schema.schema.epoch == file.epoch", "schema.schema.epoch == file.epoch",
            tests: "RecoveryTests"),
        .client(
            .expression, "a batch is frozen with the bases of another history", in: session,
            "!record.mustDrain && schema.schema.epoch == file.epoch", "!record.mustDrain", tests: "UnseenRowsTests"),
        .client(
            .expression, "a batch is sent before it is known whose the token is", in: session, "caller.isVerified",
            "true", within: "if exchange.rejection == nil, caller.isVerified, try mayFreeze",
            tests: "SessionTests/nothingIsSentWithATokenOfAnotherAccount", "SwitchingTests"),
        .client(
            .expression, "rows of another account are written", in: session,
            "answer.syncID == attachment.account.syncID", "true",
            tests: "SessionTests/nothingIsSentWithATokenOfAnotherAccount"),
        .client(
            .statement, "a batch that was too large is not pulled for", in: session,
            "try record.setMustDrain(true)", tests: "RecoveryTests"),
        .client(
            .expression, "a page is taken that was asked for before something else happened",
            in: "Session/NextPage.swift",
            "request.json() == self.request", "true", tests: "NextPageTests",
            unfound: "needs a vector that begins again while the next page is under way"),
        .client(
            .statement, "nothing is sent any more once everything was pulled again", in: answering,
            "try record.setMustDrain(false)", tests: "RecoveryTests"),
        .client(
            .statement, "batches are frozen while a history begins again", in: answering,
            "try file.database.transaction { try record.setMustDrain(true, isResync: true) }", tests: "RecoveryTests"),
        .client(
            .statement, "rows that a new history lacks are not sent again", in: answering,
            "try applying.forgetAbsentRows(isAdopting: !record.adoptsAbsentRows)", tests: "OwnerTests",
            "MigrationTests", "ResolvingTests"),
        .client(
            .expression, "a batch is frozen from what the file had before another process has reset it",
            in: session, "try file.requiring(resets: &resets) { try file.freeze(session) }",
            "try file.freeze(session)", tests: "SwitchingTests"),
        .client(
            .expression, "what a session has left is not tried again while the server is watched", in: schedule,
            "!isWatching || isPending", "!isWatching", within: "if !isWatching || isPending {",
            tests: "AttemptScheduleTests"),
        .client(
            .expression, "a write during a session is forgotten at its end", in: schedule, "isPending || due != nil",
            "isPending", tests: "AttemptScheduleTests"),
        .client(
            .statement, "a session that has failed makes none due", in: schedule, "makeDue(notBefore)",
            tests: "AttemptScheduleTests"),
    ]
}

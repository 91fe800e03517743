import Foundation
import WeirClient

/// Devices whose rows are not the same although all have synced.
public struct ConvergenceFailure: Error, CustomStringConvertible {
    /// What does not hold, a line for each: what is pending, what the server has not stored, and where files differ.
    public let findings: [String]
    /// The kit's seed.
    public let seed: UInt64

    /// All findings.
    public var description: String {
        "the devices did not converge (seed \(seed)):\n" + findings.map { "  \($0)" }.joined(separator: "\n")
    }
}

extension SyncKit {
    /// Syncs all devices until none has anything to send or to receive, and compares their files: those of one account must have the
    /// same rows, also as a device that was never there before.
    ///
    /// Meanwhile there are neither faults nor delays, and what the app's resolvers decide is waited for. Values are compared as the server has them, so that two spellings of one time
    /// are no difference.
    ///
    /// - Parameter rounds: how often each device syncs at most. Two are enough where no app writes meanwhile; edits that the server
    ///   refuses, or that follow each other, may need more.
    /// - Throws: ``ConvergenceFailure`` with every difference, table, row and column named; `WeirError`; `CancellationError`.
    public func converge(rounds: Int = 8) async throws {
        let devices = devices
        let offline = devices.filter { !$0.network.isOnline }.map {
            "\($0.name) is offline: call network.goOnline() before"
        }
        let stopped = server.isRunning ? [] : ["the server is stopped: call server.start() before"]
        guard offline.isEmpty, stopped.isEmpty else {
            throw ConvergenceFailure(findings: stopped + offline, seed: seed)
        }
        for device in devices { device.network.setCalm(true) }
        clock.releaseAll()
        defer { for device in devices { device.network.setCalm(false) } }
        // In the order in which they were made, so that a seed always syncs them in the same one.
        var groups: [Convergence.Group] = []
        for device in devices where !groups.contains(where: { $0.login.isSame(as: device.login) }) {
            let login = device.login
            groups.append(
                Convergence.Group(login: login, devices: devices.filter { $0.login.isSame(as: login) }) {
                    try await self.make("reference-\(UUID().uuidString)", login)
                })
        }
        let convergence = Convergence(groups: groups, forms: ValueForms(server.tables))
        let findings = try await convergence.findings(rounds: rounds)
        if !findings.isEmpty { throw ConvergenceFailure(findings: findings, seed: seed) }
    }
}

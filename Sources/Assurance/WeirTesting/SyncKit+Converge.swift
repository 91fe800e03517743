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
    /// Meanwhile there are neither faults nor delays. Values are compared as the server has them, so that two spellings of one time
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
        var findings: [String] = []
        for _ in 0..<max(1, rounds) {
            findings = []
            for device in devices {
                do {
                    try await device.sync()
                } catch let error as SyncError {
                    findings.append("\(device.name) cannot sync: \(error)")
                }
            }
            for device in devices { findings += try await device.pending() }
            // What is pending is sent in another round; then equal files are expected.
            if findings.isEmpty { findings = try await differences(of: devices) }
            if findings.isEmpty { return }
        }
        for device in devices { findings += try await device.notStored() }
        throw ConvergenceFailure(findings: findings, seed: seed)
    }

    /// Where devices of one account differ from one that was never there before.
    private func differences(of devices: [TestDevice]) async throws -> [String] {
        struct Login: Hashable {
            let account: String
            let links: [String: Access]
        }
        let forms = ValueForms(server.tables)
        var found: [String] = []
        for (login, members) in Dictionary(grouping: devices, by: { Login(account: $0.account, links: $0.links) }) {
            let reference = try await make(
                "reference-\(UUID().uuidString)", account: login.account, links: login.links)
            let expected: DeviceContent
            do {
                try await reference.sync()
                expected = try await reference.content(forms)
            } catch {
                await reference.close()
                throw error
            }
            await reference.close()
            for device in members {
                found += DeviceContent.differences(
                    (device.name, try await device.content(forms)), ("the server", expected))
            }
        }
        return found
    }
}

extension TestDevice {
    /// What has not reached the server.
    fileprivate func pending() async throws -> [String] {
        let rows = try await weir.pendingRows()
        if rows == 0 { return [] }
        let reasons = weir.currentStatus.needsAttention.map { "\($0)" }.sorted()
        let reason = reasons.isEmpty ? "" : " (\(reasons.joined(separator: ", ")))"
        return ["\(name) has changes of \(rows) rows that the server has not acknowledged\(reason)"]
    }

    /// What the server has not stored, and what the app's tables cannot have: mostly why files differ.
    fileprivate func notStored() async throws -> [String] {
        let kept = try await weir.keptEdits().map {
            "\(name) \($0.table) \($0.key.string ?? $0.key.description) was not stored: \($0.code): \($0.message)"
        }
        let parked = try await weir.parkedRows().map { "\(name) cannot have \($0.table) \($0.id): \($0.reason)" }
        return kept + parked
    }
}

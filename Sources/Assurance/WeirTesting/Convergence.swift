import WeirClient

/// Syncs devices until none has anything to send or to receive, and compares them.
package struct Convergence: Sendable {
    /// Devices that must have the same rows.
    package struct Group: Sendable {
        let login: Login
        let devices: [TestDevice]
        /// A device with an empty file, which gets what the server has.
        let reference: @Sendable () async throws -> TestDevice

        package init(
            login: Login, devices: [TestDevice], reference: @escaping @Sendable () async throws -> TestDevice
        ) {
            self.login = login
            self.devices = devices
            self.reference = reference
        }
    }

    private let groups: [Group]
    private let forms: ValueForms

    package init(groups: [Group], forms: ValueForms = ValueForms([])) {
        self.groups = groups
        self.forms = forms
    }

    /// What does not hold after so many rounds, a line for each finding.
    package func findings(rounds: Int) async throws -> [String] {
        let devices = groups.flatMap(\.devices)
        var findings: [String] = []
        for _ in 0..<max(1, rounds) {
            findings = []
            for device in devices {
                do {
                    try await device.sync()
                } catch let error as SyncError {
                    findings.append("\(device.name) cannot sync: \(error)")
                }
                // What they decide is sent in another round.
                await device.weir.finishResolving()
            }
            for device in devices { findings += try await device.pending() }
            // What is pending is sent in another round; then equal files are expected.
            if findings.isEmpty { for group in groups { findings += try await differences(in: group) } }
            if findings.isEmpty { return [] }
        }
        for device in devices { findings += try await device.notStored() }
        return findings
    }

    private func differences(in group: Group) async throws -> [String] {
        let reference = try await group.reference()
        let expected: DeviceContent
        do {
            try await reference.sync()
            expected = try await reference.content(forms)
        } catch {
            await reference.close()
            throw error
        }
        await reference.close()
        var found: [String] = []
        for device in group.devices {
            found += DeviceContent.differences(
                (device.name, try await device.content(forms)), ("the server", expected))
        }
        return found
    }
}

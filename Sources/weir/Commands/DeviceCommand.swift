import Commands
import Control
import SyncModel

/// `weir device revoke`, `weir device allow` and `weir device revoked`: an operator decides for a caller.
enum DeviceCommand {
    static let command = Command(
        "device", "Revoke a caller's device, or allow it again.",
        subcommands: [
            Command(
                "revoke", "Refuse every request of a device.", Weir.Action { try await decide(isRevoked: true, $0) },
                arguments: device, options: ControlCommand.options,
                discussion: "As the caller does with DELETE /v1/devices/{knowledgeId}." + effect),
            Command(
                "allow", "Allow a revoked device again.", Weir.Action { try await decide(isRevoked: false, $0) },
                arguments: device, options: ControlCommand.options,
                discussion: "What a caller cannot do." + effect),
            Command(
                "revoked", "List the revoked devices.", Weir.Action(list), options: ControlCommand.options,
                discussion: "A line each: the caller, a tab, the device."),
        ])

    private static let effect = """

        The decision is written to control. On a cluster gateways obey it at once; in a data folder, whose process must be stopped,
        at the next start. Exit codes: 0 decided, 1 not.
        """
    private static let device: [CommandArgument] = [
        .one("SYNCID", "The caller whose device it is."), .one("KNOWLEDGEID", "The device."),
    ]

    private static func decide(isRevoked: Bool, _ invocation: Invocation) async throws -> ExitCode {
        let name = isRevoked ? "device revoke" : "device allow"
        guard let caller = SyncID(invocation.arguments[0]), let knowledgeID = KnowledgeID(invocation.arguments[1]),
            knowledgeID != .everyOther
        else { throw UsageError("SYNCID and KNOWLEDGEID have 1 to 255 bytes, and KNOWLEDGEID is not *", of: name) }
        let device = Device(caller: caller, knowledgeID: knowledgeID)
        return try await ControlCommand.run(invocation, except: [], as: name) { log, control in
            if control.devices.contains(device) == isRevoked {
                Output.write(isRevoked ? "It is revoked already." : "It is not revoked.")
                return
            }
            try await control.decide(DeviceDecision(device, isRevoked: isRevoked), in: log)
            Output.write(isRevoked ? "The device is revoked." : "The device is allowed again.")
        }
    }

    private static func list(_ invocation: Invocation) async throws -> ExitCode {
        try await ControlCommand.run(invocation, except: [], as: "device revoked") { _, control in
            let devices = control.devices.all.sorted {
                ($0.caller, $0.knowledgeID) < ($1.caller, $1.knowledgeID)
            }
            for device in devices { Output.write("\(device.caller)\t\(device.knowledgeID)") }
        }
    }
}

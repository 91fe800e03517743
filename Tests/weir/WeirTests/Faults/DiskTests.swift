import Foundation
import Testing

/// The disk is full or read-only: uploads are rejected, and all stages continue without a restart when there is space again.
@Suite(.timeLimit(.minutes(5))) struct DiskTests {
    private static let settings = ["ordering.retry-delay": "1ms"]

    @Test func uploadsLeaveSpaceForAcknowledgedBatches() async throws {
        let folder = try TestFolder()
        let disk = try FaultyDisk(under: folder)
        let weir = try await TestServer.start(
            in: folder, settings: Self.settings.merging(["changelog.reserve-bytes": "8MiB"]) { $1 },
            environment: disk.environment)
        var uploader = Uploader(weir)
        disk.freeBytes = 9 << 20
        let refusal = try await uploader.uploadUntilRejected()
        #expect(refusal.status == 503)
        #expect(try refusal.json()["code"].string == "storage_full")
        #expect(refusal.headers["retry-after"] != nil)
        #expect(uploader.acknowledged > 0)
        #expect(await weir.hasLogged("Uploads cannot be appended"))
        #expect(await weir.hasLogged("is down to the reserve"))
        // Everything acknowledged is processed although there is no more space than before.
        try await uploader.expectEverything()
        #expect(disk.freeBytes > 0)
        #expect(!weir.log.contains { $0.contains("trying again") || $0.contains("restarts from") })

        disk.freeBytes = .max
        #expect(try await uploader.upload().status == 202)
        try await uploader.expectEverything()
        #expect(await weir.stop() == 0)
    }

    @Test(arguments: [0, 200_000, 1_000_000, 3_000_000])
    func aFullDiskLosesNothingAndNeedsNoRestart(freeBytes: Int64) async throws {
        let folder = try TestFolder()
        let disk = try FaultyDisk(under: folder)
        let weir = try await TestServer.start(
            in: folder, settings: Self.settings.merging(["changelog.reserve-bytes": "0"]) { $1 },
            environment: disk.environment)
        var uploader = Uploader(weir)
        try await uploader.uploadUntilAccepted()
        disk.freeBytes = freeBytes
        let refusal = try await uploader.uploadUntilRejected()
        #expect(refusal.status == 503)
        #expect(try refusal.json()["code"].string == "storage_full")
        #expect(await weir.hasLogged("Uploads cannot be appended"))

        disk.freeBytes = .max
        try await uploader.uploadUntilAccepted()
        try await uploader.expectEverything()
        #expect(await weir.hasLogged("Uploads are appended again"))
        #expect(await weir.stop() == 0)
    }

    @Test func aDiskThatBecomesReadOnlyLosesNothingAndNeedsNoRestart() async throws {
        let folder = try TestFolder()
        let disk = try FaultyDisk(under: folder)
        let weir = try await TestServer.start(in: folder, settings: Self.settings, environment: disk.environment)
        var uploader = Uploader(weir)
        for _ in 0..<3 { try await uploader.uploadUntilAccepted() }
        disk.isReadOnly = true
        let refusal = try await uploader.uploadUntilRejected()
        #expect(refusal.status == 503)
        #expect(try refusal.json()["code"].string == "not_ready")
        #expect(await weir.hasLogged("Uploads cannot be appended"))

        disk.isReadOnly = false
        try await uploader.uploadUntilAccepted()
        try await uploader.expectEverything()
        #expect(await weir.stop() == 0)
    }
}

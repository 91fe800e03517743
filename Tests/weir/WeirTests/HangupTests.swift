import Foundation
import Testing

/// SIGHUP ends no process: its certificate is read again.
@Suite(.timeLimit(.minutes(5))) struct HangupTests {
    /// Makes a certificate and its key in a folder.
    private func makeCertificate(in folder: TestFolder) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
            "2", "-subj", "/CN=localhost", "-keyout", folder.path + "/key.pem", "-out",
            folder.path + "/certificate.pem",
        ]
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
    }

    @Test func theCertificateIsReadAgainAndTheProcessContinues() async throws {
        let folder = try TestFolder()
        try makeCertificate(in: folder)
        let weir = try await TestServer.start(
            in: folder,
            settings: [
                "gateway.tls.certificate": folder.path + "/certificate.pem",
                "gateway.tls.key": folder.path + "/key.pem",
            ])
        #expect(await weir.hasLogged("Weir is ready: send the first request to https://"))
        let operations = DeviceClient(port: try #require(weir.operationsPort), headers: [:])
        func metrics() async throws -> String {
            String(decoding: try await operations.get("/metrics").body, as: UTF8.self)
        }
        #expect(try await metrics().contains("weir_http_certificate_loads_total 0"))
        try makeCertificate(in: folder)
        weir.send(SIGHUP)
        #expect(await weir.hasLogged("SIGHUP: certificates are read again"))
        #expect(await weir.hasLogged("The certificate was read again; new connections get it"))
        try Data("nonsense".utf8).write(to: URL(filePath: folder.path + "/certificate.pem"))
        weir.send(SIGHUP)
        #expect(await weir.hasLogged("A changed certificate cannot be used; new connections get the previous one"))
        let text = try await metrics()
        #expect(text.contains("weir_http_certificate_loads_total 1"))
        // One more if the files were read while openssl had written one of them.
        #expect(!text.contains("weir_http_certificate_failures_total 0"))
        #expect(await weir.stop() == 0)
    }

    @Test func aProcessWithoutACertificateContinues() async throws {
        let weir = try await TestServer.start()
        weir.send(SIGHUP)
        #expect(await weir.hasLogged("SIGHUP"))
        var device = TestDevice(weir, syncID: "abc", knowledgeID: "k1")
        #expect(TestDevice.verdicts(try await device.sync([TestDevice.change("r", ["name": "A"])])) == ["applied"])
        #expect(await weir.stop() == 0)
    }
}

import Digest
import HTTP

/// The demo page: devices in a browser tab, which sync by the client contract alone.
///
/// Its files are static, and parts of the program. They are no part of the contract: what the page requests is checked as the requests of
/// any other client.
struct DemoPage: Sendable {
    /// Nothing but its own files, and requests to its own origin; no text becomes markup.
    private static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
        + "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

    /// The value of the header `Allow`.
    static let allow = "GET, HEAD, OPTIONS"

    private static let script = "text/javascript; charset=utf-8"

    /// By the path below `/demo/`; the page itself by none.
    private static let files: [String: File] = [
        "": File("text/html; charset=utf-8", PackageResources.page_html),
        "page.css": File("text/css; charset=utf-8", PackageResources.page_css),
        "icon.svg": File("image/svg+xml", PackageResources.icon_svg),
        "page.js": File(script, PackageResources.page_js),
        "card.js": File(script, PackageResources.card_js),
        "rows.js": File(script, PackageResources.rows_js),
        "cells.js": File(script, PackageResources.cells_js),
        "path.js": File(script, PackageResources.path_js),
        "journeys.js": File(script, PackageResources.journeys_js),
        "session.js": File(script, PackageResources.session_js),
        "server.js": File(script, PackageResources.server_js),
        "device.js": File(script, PackageResources.device_js),
        "storage.js": File(script, PackageResources.storage_js),
    ]

    /// The file of a path; `nil` where the page has none.
    func file(at segments: [String]) -> File? {
        guard let first = segments.first, first.utf8.elementsEqual("demo".utf8), segments.count <= 2 else { return nil }
        guard segments.count == 2 else { return Self.files[""] }
        return segments[1].isEmpty ? nil : Self.files[segments[1]]
    }

    /// A file of the page.
    struct File: Sendable {
        private let type: String
        private let body: [UInt8]
        /// Weak, since the body may be sent compressed.
        private let tag: String

        fileprivate init(_ type: String, _ body: [UInt8]) {
            self.type = type
            self.body = body
            tag = "W/\"\(hexadecimal(SHA256.digest(of: body)))\""
        }

        func response(to request: HTTPRequest) -> HTTPResponse {
            let headers = [
                HTTPField("ETag", tag), HTTPField("Cache-Control", "no-cache"),
                HTTPField("Content-Security-Policy", DemoPage.policy), HTTPField("X-Content-Type-Options", "nosniff"),
                HTTPField("Referrer-Policy", "no-referrer"), HTTPField("Cross-Origin-Resource-Policy", "same-origin"),
                HTTPField("Cross-Origin-Opener-Policy", "same-origin"),
            ]
            if request.knows(tag: tag) { return HTTPResponse(status: 304, headers: headers) }
            return HTTPResponse(
                status: 200, headers: [HTTPField("Content-Type", type)] + headers, body: body, isCompressible: true
            ).withSharedBody()
        }
    }
}

extension GatewayHandler {
    /// The file of the demo page that a request is for; `nil` for all other requests.
    func demoFile(_ request: HTTPRequest) throws(Problem) -> DemoPage.File? {
        guard let file = demo?.file(at: request.segments) else { return nil }
        guard [.get, .head, .options].contains(request.method) else { throw Problem(allowing: DemoPage.allow) }
        return file
    }
}

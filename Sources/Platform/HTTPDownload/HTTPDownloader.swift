import CCurl
import Synchronization
import ThreadExecutor

/// A small document from a web server.
package struct DownloadedDocument: Sendable {
    package let body: [UInt8]
    /// The values of `Cache-Control`, in the order sent.
    package let cacheControl: [String]
    /// The seconds that the document has been in caches (`Age`).
    package let age: Int
}

/// Why a download failed, for an operator.
package struct DownloadError: Error, Sendable, CustomStringConvertible {
    package let description: String
}

/// Downloads small documents with libcurl, one at a time, on a thread of its own.
package final class HTTPDownloader: Sendable {
    private let thread: DedicatedThread
    private let limits: DownloadLimits
    private let authorities: String?

    /// - Parameter authorities: a file in PEM with the certificates that `https` servers' must be signed by; `nil`: the system's.
    package init(limits: DownloadLimits = DownloadLimits(), authorities: String? = nil) throws(ThreadStartError) {
        self.limits = limits
        self.authorities = authorities
        thread = try DedicatedThread(name: "download")
    }

    /// Downloads a document with GET.
    ///
    /// Up to three redirects are followed, from `https` to `https` only. Cancelling the task ends the transfer.
    ///
    /// - Throws: an error for every status but 200.
    package func download(_ url: DownloadURL) async throws(DownloadError) -> DownloadedDocument {
        let transfer = Transfer(maximumBytes: limits.maximumBytes)
        return try await withTaskCancellationHandler {
            () async -> Result<DownloadedDocument, DownloadError> in
            await thread.run { [limits, authorities] in
                Result { () throws(DownloadError) in
                    try transfer.run(url, limits: limits, authorities: authorities)
                }
            }
        } onCancel: {
            transfer.cancel()
        }.get()
    }

    /// Ends the thread; nothing may be downloaded any more.
    package func close() async { await thread.close() }
}

package struct DownloadLimits: Sendable {
    /// Of the body.
    package var maximumBytes = 1 << 20
    /// Of the whole transfer, with redirects.
    package var time: Duration = .seconds(10)

    package init() {}
}

/// One transfer: what its callbacks need.
///
/// Sendable because the body is used on the thread of the transfer only, until that has ended.
private final class Transfer: @unchecked Sendable {
    private let maximumBytes: Int
    private var body: [UInt8] = []
    private let isCancelled = Atomic(false)

    init(maximumBytes: Int) { self.maximumBytes = maximumBytes }

    func cancel() { isCancelled.store(true, ordering: .relaxed) }

    /// libcurl's global state, made once.
    private static let isInitialised = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    func run(
        _ url: DownloadURL, limits: DownloadLimits, authorities: String?
    ) throws(DownloadError) -> DownloadedDocument {
        guard Self.isInitialised, let handle = curl_easy_init() else {
            throw DownloadError(description: "libcurl cannot be initialised")
        }
        defer { curl_easy_cleanup(handle) }
        let message = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
        message.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        defer { message.deallocate() }
        try configure(handle, url, limits, authorities, message)
        let code = curl_easy_perform(handle)
        if isCancelled.load(ordering: .relaxed) { throw DownloadError(description: "the download was cancelled") }
        guard code == CURLE_OK else {
            if body.count > maximumBytes {
                throw DownloadError(description: "the document has more than \(maximumBytes) bytes")
            }
            let detail = message[0] == 0 ? String(cString: curl_easy_strerror(code)) : String(cString: message)
            throw DownloadError(description: detail)
        }
        var status = 0
        _ = CCurl_get_number(handle, CURLINFO_RESPONSE_CODE, &status)
        guard status == 200 else { throw DownloadError(description: "the server responded with status \(status)") }
        return DownloadedDocument(
            body: body, cacheControl: headers("cache-control", of: handle),
            age: headers("age", of: handle).first.flatMap { Int($0) } ?? 0)
    }

    private func configure(
        _ handle: UnsafeMutableRawPointer, _ url: DownloadURL, _ limits: DownloadLimits, _ authorities: String?,
        _ message: UnsafeMutablePointer<CChar>
    ) throws(DownloadError) {
        let milliseconds = Int(limits.time / .milliseconds(1))
        let protocols = url.isPlain ? "http" : "https"
        var codes = [
            CCurl_set_text(handle, CURLOPT_URL, url.text),
            CCurl_set_text(handle, CURLOPT_PROTOCOLS_STR, protocols),
            CCurl_set_text(handle, CURLOPT_REDIR_PROTOCOLS_STR, "https"),
            // A redirect from loopback would lead plain HTTP elsewhere.
            CCurl_set_number(handle, CURLOPT_FOLLOWLOCATION, url.isPlain ? 0 : 1),
            CCurl_set_number(handle, CURLOPT_MAXREDIRS, 3),
            // Signals would reach any thread of the process.
            CCurl_set_number(handle, CURLOPT_NOSIGNAL, 1),
            CCurl_set_number(handle, CURLOPT_TIMEOUT_MS, milliseconds),
            CCurl_set_number(handle, CURLOPT_CONNECTTIMEOUT_MS, milliseconds),
            CCurl_set_text(handle, CURLOPT_USERAGENT, "weir"),
            CCurl_set_error_buffer(handle, message),
            CCurl_set_callbacks(
                handle, Self.receive, Self.reportProgress, Unmanaged.passUnretained(self).toOpaque()),
        ]
        if url.isPlain { codes.append(CCurl_set_text(handle, CURLOPT_NOPROXY, "*")) }
        if let authorities {
            codes.append(CCurl_set_text(handle, CURLOPT_CAINFO, authorities))
            codes.append(CCurl_set_text(handle, CURLOPT_CAPATH, nil))
        }
        if let failed = codes.first(where: { $0 != CURLE_OK }) {
            throw DownloadError(description: String(cString: curl_easy_strerror(failed)))
        }
    }

    private static let receive: curl_write_callback = { bytes, size, count, context in
        guard let bytes, let context else { return 0 }
        // Not retained: `run` is on the stack below.
        let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
        let received = UnsafeRawBufferPointer(start: bytes, count: size * count)
        transfer.body += received
        // Fewer bytes than there were end the transfer.
        return transfer.body.count <= transfer.maximumBytes ? received.count : 0
    }

    private static let reportProgress: curl_xferinfo_callback = { context, _, _, _, _ in
        guard let context else { return 0 }
        return Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue().isCancelled.load(ordering: .relaxed)
            ? 1 : 0
    }

    /// The values of a header of the last response.
    private func headers(_ name: String, of handle: UnsafeMutableRawPointer) -> [String] {
        var values: [String] = []
        while values.count < 16 {
            var header: UnsafeMutablePointer<curl_header>?
            guard curl_easy_header(handle, name, values.count, UInt32(CURLH_HEADER), -1, &header) == CURLHE_OK,
                let header, let value = header.pointee.value
            else { break }
            values.append(String(cString: value))
        }
        return values
    }
}

import HTTPDownload
import ThreadExecutor

/// Keys at a URL.
package final class WebKeySource: KeySource {
    private let url: DownloadURL
    private let format: KeyFormat
    private let downloader: HTTPDownloader

    /// - Parameter authorities: a file in PEM with the certificates that the server's must be signed by; `nil`: the system's.
    package init(
        _ url: DownloadURL, _ format: KeyFormat, limits: DownloadLimits, authorities: String? = nil
    ) throws(ThreadStartError) {
        self.url = url
        self.format = format
        downloader = try HTTPDownloader(limits: limits, authorities: authorities)
    }

    package var name: String { url.text }

    package func keys() async throws -> PublishedKeys {
        let document = try await downloader.download(url)
        return PublishedKeys(
            try format.keys(in: document.body),
            maximumAge: CacheControl.maximumAge(document.cacheControl).map {
                .seconds(max(0, $0 - max(0, document.age)))
            })
    }

    package func close() async { await downloader.close() }
}

/// The header `Cache-Control` (RFC 9111, 5.2.2).
enum CacheControl {
    /// The seconds for which a response may be kept; `nil` where it does not say.
    static func maximumAge(_ values: [String]) -> Int? {
        var age: Int?
        for directive in values.flatMap({ $0.lowercased().split(separator: ",") }) {
            let parts = directive.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " && $0 != "\"" } }
            switch parts.first {
            case "no-store", "no-cache": return 0
            case "max-age" where parts.count == 2:
                let digits = parts[1].utf8
                guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return 0 }
                // A number that does not fit is as long as any.
                age = min(age ?? .max, Int(parts[1]) ?? .max)
            default: break
            }
        }
        return age
    }
}

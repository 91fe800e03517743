import Glibc
import Synchronization

/// The certificate that new connections of a server get; its files are read again when they may have changed.
final class TLSCertificate: Sendable {
    private struct Content: Equatable {
        var certificate: [UInt8]
        var key: [UInt8]
    }

    private struct State {
        var credentials: TLSCredentials
        /// What the files had when `credentials` were made of them.
        var served: Content
        /// What the files had when they could not be used, so that it is tried once.
        var rejected: Content?
        /// The last problem, which is not reported again; `nil` once the files can be used.
        var problem: String?
        var loads = 0
        var failures = 0
    }

    private let files: HTTPTLSFiles
    private let state: Mutex<State>
    /// In PEM, as at the start.
    let first: MicrohttpdDaemon.Certificate

    init(_ files: HTTPTLSFiles) throws(HTTPServerError) {
        let content = try Self.read(files)
        do throws(TLSCredentials.Failure) {
            let credentials = try TLSCredentials(certificate: content.certificate, key: content.key)
            state = Mutex(State(credentials: credentials, served: content))
        } catch {
            throw .unusableCertificate(certificate: files.certificate, key: files.key, reason: error.reason)
        }
        self.files = files
        first = MicrohttpdDaemon.Certificate(certificate: content.certificate, key: content.key)
    }

    /// What connections that begin now get.
    var credentials: TLSCredentials { state.withLock { $0.credentials } }

    /// How often the files were loaded again, and how often they had changed and could not be used.
    var counts: (loads: Int, failures: Int) { state.withLock { ($0.loads, $0.failures) } }

    /// Reads the files, and uses them for new connections if they have changed and are a certificate with its key.
    ///
    /// - Returns: what happened; `nil` if nothing has changed.
    func reload(now: Int = time(nil)) -> HTTPServerEvent? {
        let content: Content
        do throws(HTTPServerError) {
            content = try Self.read(files)
        } catch {
            return failed(error.description, nil)
        }
        let isKnown = state.withLock { state in
            if state.served == content { (state.rejected, state.problem) = (nil, nil) }
            return state.served == content || state.rejected == content
        }
        if isKnown { return nil }
        do throws(TLSCredentials.Failure) {
            let credentials = try TLSCredentials(certificate: content.certificate, key: content.key)
            if credentials.activation > now {
                throw TLSCredentials.Failure(
                    reason: "the certificate is valid from \(Self.text(credentials.activation)) on")
            }
            if credentials.expiration < now { throw TLSCredentials.Failure(reason: "the certificate has expired") }
            state.withLock { state in
                state.credentials = credentials
                state.served = content
                (state.rejected, state.problem) = (nil, nil)
                state.loads += 1
            }
            return .certificateLoaded(path: files.certificate, expires: Self.text(credentials.expiration))
        } catch {
            let problem = HTTPServerError.unusableCertificate(
                certificate: files.certificate, key: files.key, reason: error.reason)
            return failed(problem.description, content)
        }
    }

    /// Reports a problem with the files; that they cannot be read is reported once.
    ///
    /// - Parameter content: `nil` if they cannot be read.
    private func failed(_ problem: String, _ content: Content?) -> HTTPServerEvent? {
        state.withLock { state in
            state.rejected = content
            guard content != nil || state.problem != problem else { return nil }
            state.problem = problem
            state.failures += 1
            return .certificateUnusable(reason: problem)
        }
    }

    /// RFC 3339 in UTC.
    private static func text(_ seconds: Int) -> String {
        var (seconds, parts) = (time_t(seconds), tm())
        gmtime_r(&seconds, &parts)
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { text in
            let count = strftime(text.baseAddress!, text.count, "%Y-%m-%dT%H:%M:%SZ", &parts)
            return String(decoding: text.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }

    private static func read(_ files: HTTPTLSFiles) throws(HTTPServerError) -> Content {
        Content(certificate: try FileBytes.read(files.certificate), key: try FileBytes.read(files.key))
    }
}

import CPostgres

/// The keywords and values of a libpq connection string.
///
/// libpq adds missing ones from the environment (`PGHOST`), the service file and the password file.
package struct ConnectionParameters: Sendable, CustomStringConvertible {
    private var values: [String: String]

    /// Reads a connection string of libpq: `postgresql://user@host/database?sslmode=verify-full`, or
    /// `host=… dbname=…`.
    ///
    /// - Throws: ``ConnectionStringError``, which does not quote the text, since it may contain a password.
    package init(_ text: String) throws(ConnectionStringError) {
        var message: UnsafeMutablePointer<CChar>?
        guard let options = PQconninfoParse(text, &message) else {
            PQfreemem(message)
            throw ConnectionStringError()
        }
        defer { PQconninfoFree(options) }
        values = [:]
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val { values[String(cString: keyword)] = String(cString: value) }
            option += 1
        }
    }

    /// `nil` if libpq's own sources and defaults apply.
    package subscript(keyword: String) -> String? {
        get { values[keyword] }
        set { values[keyword] = newValue }
    }

    /// Whether the connection uses a Unix socket or the loopback interface.
    package var isLocal: Bool {
        guard let host = values["hostaddr"] ?? values["host"], !host.isEmpty else { return true }
        return host.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).allSatisfy { part in
            let name = String(Substring(part))
            return name.hasPrefix("/") || name.hasPrefix("@") || name.hasPrefix("127.")
                || ["localhost", "::1", ""].contains(name)
        }
    }

    /// Sets `sslmode=verify-full` for a server on a network, unless `sslmode` is given.
    package func verifyingServers() -> ConnectionParameters {
        guard values["sslmode"] == nil, !isLocal else { return self }
        var changed = self
        changed["sslmode"] = "verify-full"
        return changed
    }

    /// Host, port, database and user; never a password.
    package var description: String {
        let known = ["host", "hostaddr", "port", "dbname", "user"].compactMap { keyword in
            values[keyword].map { "\(keyword)=\($0)" }
        }
        return known.isEmpty ? "the default database of libpq" : known.joined(separator: " ")
    }

    /// Passes the keywords and the values as two null-terminated arrays of C strings.
    func withCStrings<Result>(
        _ body: (UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<UnsafePointer<CChar>?>) -> Result
    ) -> Result {
        let sorted = values.sorted { $0.key < $1.key }
        var bytes: [CChar] = []
        var offsets: [(keyword: Int, value: Int)] = []
        for (keyword, value) in sorted {
            let start = bytes.count
            bytes.append(contentsOf: keyword.utf8CString)
            offsets.append((start, bytes.count))
            bytes.append(contentsOf: value.utf8CString)
        }
        return bytes.withUnsafeBufferPointer { buffer in
            func pointer(_ offset: Int) -> UnsafePointer<CChar>? { buffer.baseAddress.map { $0 + offset } }
            let keywords = offsets.map { pointer($0.keyword) }
            let texts = offsets.map { pointer($0.value) }
            return body(keywords + [nil], texts + [nil])
        }
    }
}

extension ConnectionParameters: CustomReflectable {
    /// Empty, since the values may include a password.
    package var customMirror: Mirror { Mirror(self, children: []) }
}

package struct ConnectionStringError: Error, Sendable, Hashable, CustomStringConvertible {
    package var description: String {
        "invalid libpq connection string: write postgresql://user@host:port/database, or host=… port=… dbname=… user=…"
    }
}

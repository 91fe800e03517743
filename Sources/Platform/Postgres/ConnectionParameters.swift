import CPostgres

/// Where a database is and how it is reached: libpq's keywords with their values.
///
/// What is not said here, libpq takes from its own sources: variables (`PGHOST`), the service file, the password file.
package struct ConnectionParameters: Sendable, CustomStringConvertible {
    private var values: [String: String]

    /// Reads a connection string of libpq: `postgresql://user@host/database?sslmode=verify-full`, or
    /// `host=… dbname=…`.
    ///
    /// - Throws: ``ConnectionStringError``, which quotes nothing of the text, since a password may stand in it.
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

    /// The value of a keyword; `nil` where libpq's own sources and defaults count.
    package subscript(keyword: String) -> String? {
        get { values[keyword] }
        set { values[keyword] = newValue }
    }

    /// Whether the database is reached without a network: over a Unix socket or the machine's own loopback.
    package var isLocal: Bool {
        guard let host = values["hostaddr"] ?? values["host"], !host.isEmpty else { return true }
        return host.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).allSatisfy { part in
            let name = String(Substring(part))
            return name.hasPrefix("/") || name.hasPrefix("@") || name.hasPrefix("127.")
                || ["localhost", "::1", ""].contains(name)
        }
    }

    /// The same, with a server reached over a network made to prove who it is (`sslmode=verify-full`), unless `sslmode`
    /// is given.
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

    /// Lends the keywords and values as C wants them: two lists of strings, each ended by a null.
    func withCStrings<Result>(
        _ body: (UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<UnsafePointer<CChar>?>) -> Result
    ) -> Result {
        let sorted = values.sorted { $0.key < $1.key }
        var bytes: [CChar] = []
        var places: [(keyword: Int, value: Int)] = []
        for (keyword, value) in sorted {
            let start = bytes.count
            bytes.append(contentsOf: keyword.utf8CString)
            places.append((start, bytes.count))
            bytes.append(contentsOf: value.utf8CString)
        }
        return bytes.withUnsafeBufferPointer { buffer in
            func pointer(_ place: Int) -> UnsafePointer<CChar>? { buffer.baseAddress.map { $0 + place } }
            let keywords = places.map { pointer($0.keyword) }
            let texts = places.map { pointer($0.value) }
            return body(keywords + [nil], texts + [nil])
        }
    }
}

extension ConnectionParameters: CustomReflectable {
    /// Nothing to look into: a password may be among the values.
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// A text is no connection string.
package struct ConnectionStringError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What to write instead.
    package var description: String {
        "no connection string of libpq: write postgresql://user@host:port/database, or host=… port=… dbname=… user=…"
    }
}

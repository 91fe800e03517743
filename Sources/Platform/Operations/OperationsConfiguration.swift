import Configuration

/// Where the operations port listens; the executable scopes it with `operations.`.
package struct OperationsConfiguration: ConfigurationComponent {
    static let address = ConfigurationKey(
        "address", .operationsAddress, default: .at(NetworkAddress(host: "127.0.0.1", port: 9464)!),
        "Where /metrics, /healthz and /readyz are served, without authentication; off for nowhere.")

    /// Every key.
    package static let keys: [any DeclaredConfigurationKey] = [address]

    /// Where to listen; `nil` for nowhere.
    package var address: NetworkAddress?

    /// Sets the address; `nil` for nowhere.
    package init(address: NetworkAddress?) { self.address = address }

    /// Reads the settings.
    package init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
        if case .at(let address) = try reader.read(Self.address) { self.address = address }
    }
}

/// An address, or none.
enum OperationsAddress: Sendable, Hashable {
    case off
    case at(NetworkAddress)
}

extension ConfigurationType where Value == OperationsAddress {
    /// `off`, or a host and a port.
    static var operationsAddress: ConfigurationType {
        let address = ConfigurationType<NetworkAddress>.address
        return ConfigurationType(
            placeholder: "HOST:PORT|off", expected: "\(address.expected), or off",
            parse: { text in
                if let word = text.one, word.utf8.elementsEqual("off".utf8) { return .off }
                return address.parse(text).map { .at($0) }
            },
            render: { value in
                switch value {
                case .off: "off"
                case .at(let place): address.render(place)
                }
            })
    }
}

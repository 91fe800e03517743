import Configuration

/// Where the operations port listens; the executable scopes it with `operations.`.
package struct OperationsConfiguration: ConfigurationComponent {
    /// `nil`: nowhere.
    package var address = NetworkAddress("127.0.0.1:9464")

    package init() {}

    package static var settings: [Setting<Self>] {
        Setting(
            "address", \.address, .addressOrOff,
            "Where /metrics, /healthz and /readyz are served, without authentication; off for nowhere.")
    }
}

extension ConfigurationType where Value == NetworkAddress? {
    /// A host and a port, or `off`.
    fileprivate static var addressOrOff: ConfigurationType {
        let address = ConfigurationType<NetworkAddress>.address
        return ConfigurationType(
            placeholder: "HOST:PORT|off", expected: "\(address.expected), or off",
            parse: { text in
                if let word = text.one, word.utf8.elementsEqual("off".utf8) { return .some(nil) }
                return address.parse(text).map(Optional.some)
            },
            render: { $0.map(address.render) ?? "off" })
    }
}

/// Why a program that starts and loads servers cannot continue.
package struct LoadFailure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }

    package static func system(_ call: String, _ code: Int32) -> LoadFailure {
        LoadFailure("\(call) failed: \(SystemCall.text(code))")
    }
}

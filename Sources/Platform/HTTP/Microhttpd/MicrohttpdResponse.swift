import CMicrohttpd

/// Makes libmicrohttpd responses.
enum MicrohttpdResponse {
    /// Keeps a body alive while libmicrohttpd sends it.
    private final class BodyBox {
        // Invariant: immutable, so its heap storage keeps its address as long as the box exists.
        let bytes: [UInt8]

        init(_ bytes: [UInt8]) {
            self.bytes = bytes
        }
    }

    /// The caller queues the response and then destroys it.
    ///
    /// Fails for an invalid status or header.
    ///
    /// - Parameter fields: headers beside those of the response.
    static func make(_ response: HTTPResponse, _ fields: [HTTPField], closes: Bool) -> Result<OpaquePointer, Failure> {
        guard (200...599).contains(response.status) else { return .failure(Failure("status \(response.status)")) }
        let made: OpaquePointer? =
            switch response.content {
            case .bytes(let bytes): make(bytes)
            case .stream(let stream): make(stream)
            }
        guard let made else { return .failure(Failure("no memory")) }
        for field in response.headers + fields
        where MHD_add_response_header(made, field.name, field.value) != .YES {
            MHD_destroy_response(made)
            return .failure(Failure("header '\(field.name)' cannot be sent"))
        }
        if closes, MHD_add_response_header(made, "Connection", "close") != .YES {
            MHD_destroy_response(made)
            return .failure(Failure("no memory"))
        }
        return .success(made)
    }

    struct Failure: Error {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    private static func make(_ bytes: [UInt8]) -> OpaquePointer? {
        guard !bytes.isEmpty else {
            return MHD_create_response_from_buffer(0, nil, .RESPMEM_PERSISTENT)
        }
        let box = BodyBox(bytes)
        // Retained here and released once: by the callback when libmicrohttpd destroys the response, or below.
        let held = Unmanaged.passRetained(box)
        let made = box.bytes.withUnsafeBytes { bytes in
            // libmicrohttpd does not write to it.
            MHD_create_response_from_buffer_with_free_callback_cls(
                bytes.count, UnsafeMutableRawPointer(mutating: bytes.baseAddress),
                { Unmanaged<BodyBox>.fromOpaque($0!).release() }, held.toOpaque())
        }
        if made == nil { held.release() }
        return made
    }

    private static func make(_ stream: HTTPBodyStream) -> OpaquePointer? {
        // Retained here and released once: by the callback when libmicrohttpd destroys the response, or below.
        let held = Unmanaged.passRetained(stream)
        let made = MHD_create_response_from_callback(
            stream.length.map { UInt64($0) } ?? CMicrohttpd_unknown_size(), stream.blockSize,
            { context, _, target, count in
                let stream = Unmanaged<HTTPBodyStream>.fromOpaque(context!).takeUnretainedValue()
                return stream.fill(UnsafeMutableRawBufferPointer(start: target, count: count))
            },
            held.toOpaque(),
            { context in
                let stream = Unmanaged<HTTPBodyStream>.fromOpaque(context!).takeRetainedValue()
                stream.detach()
            })
        if made == nil { held.release() }
        return made
    }
}

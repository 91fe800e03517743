import CMicrohttpd

/// Makes the library's form of a response.
enum LibraryResponse {
    /// Keeps a body alive while the library sends it.
    private final class BodyBox {
        // Invariant: a constant that nobody mutates, so its storage, a heap object of its own, stays where it is for as
        // long as the box holds it.
        let bytes: [UInt8]

        init(_ bytes: [UInt8]) {
            self.bytes = bytes
        }
    }

    /// A response to queue and then to destroy; `nil` with the reason when HTTP has no such status or header.
    static func make(_ response: HTTPResponse, closes: Bool) -> Result<OpaquePointer, Failure> {
        guard (200...599).contains(response.status) else { return .failure(Failure("status \(response.status)")) }
        let made: OpaquePointer? =
            switch response.content {
            case .bytes(let bytes): make(bytes)
            case .stream(let stream): make(stream)
            }
        guard let made else { return .failure(Failure("no memory")) }
        for field in response.headers
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

    /// Why a response cannot be sent.
    struct Failure: Error {
        let reason: String

        init(_ reason: String) {
            self.reason = reason
        }
    }

    private static func make(_ bytes: [UInt8]) -> OpaquePointer? {
        guard !bytes.isEmpty else {
            return MHD_create_response_from_buffer(0, nil, .RESPMEM_PERSISTENT)
        }
        let box = BodyBox(bytes)
        // Retained once here, released once: by the library's callback when it destroys the response, or below.
        let held = Unmanaged.passRetained(box)
        let made = box.bytes.withUnsafeBytes { bytes in
            // The library does not write to it.
            MHD_create_response_from_buffer_with_free_callback_cls(
                bytes.count, UnsafeMutableRawPointer(mutating: bytes.baseAddress),
                { Unmanaged<BodyBox>.fromOpaque($0!).release() }, held.toOpaque())
        }
        if made == nil { held.release() }
        return made
    }

    private static func make(_ stream: HTTPBodyStream) -> OpaquePointer? {
        // Retained once here, released once: by the library's callback when it destroys the response, or below.
        let held = Unmanaged.passRetained(stream)
        let made = MHD_create_response_from_callback(
            CMicrohttpd_unknown_size(), HTTPBodyStream.blockSize,
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

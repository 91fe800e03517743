/// The library's handle of a connection.
struct LibraryConnection: @unchecked Sendable {
    // Unchecked: the pointer is used by the connection's own thread inside the library's callbacks, or by any thread to
    // resume the connection while it is suspended. The library frees a connection only when it is not suspended, and each
    // suspension is resumed once, under the lock of the object that noted it; so the pointer is valid at every use.
    let pointer: OpaquePointer
}

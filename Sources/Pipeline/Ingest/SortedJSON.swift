import JSON
import SyncModel

extension JSONValue {
    /// Appends the value without white space and with the members of every object in the order of their names' bytes: two
    /// spellings of the same content are the same bytes.
    ///
    /// For content that is compared and not stored: a client may serialize a batch differently when it sends it again,
    /// and libraries write members in any order. A repeated name keeps its order.
    ///
    /// - Parameter depth: how deep arrays and objects may be nested: each level may copy its content, and needs stack space.
    ///   What is nested deeper is compared as it is written.
    func appendSorted(to bytes: inout [UInt8], depth: Int = CanonicalForm.maximumDepth) {
        guard depth > 0 || isScalar else { return bytes.append(sourceBytes) }
        if var elements {
            bytes.append(UInt8(ascii: "["))
            var isFirst = true
            while let element = elements.next() {
                if !isFirst { bytes.append(UInt8(ascii: ",")) }
                isFirst = false
                element.appendSorted(to: &bytes, depth: depth - 1)
            }
            bytes.append(UInt8(ascii: "]"))
        } else if kind == .object {
            appendSortedMembers(to: &bytes, depth: depth)
        } else if let text = string {
            bytes.appendJSONString(text)
        } else {
            bytes.append(sourceBytes)
        }
    }

    private var isScalar: Bool { kind != .array && kind != .object }

    private func appendSortedMembers(to bytes: inout [UInt8], depth: Int) {
        guard var members else { return }
        var sorted: [(name: [UInt8], value: [UInt8])] = []
        while let member = members.next() {
            var value: [UInt8] = []
            member.value.appendSorted(to: &value, depth: depth - 1)
            sorted.append((Array(copying: member.name), value))
        }
        // Stable, so that a repeated name stays as it was.
        let order = sorted.indices.sorted { left, right in
            sorted[left].name == sorted[right].name
                ? left < right : sorted[left].name.lexicographicallyPrecedes(sorted[right].name)
        }
        bytes.append(UInt8(ascii: "{"))
        for (count, place) in order.enumerated() {
            if count > 0 { bytes.append(UInt8(ascii: ",")) }
            let name = sorted[place].name
            bytes.appendJSONString(name.span)
            bytes.append(UInt8(ascii: ":"))
            bytes += sorted[place].value
        }
        bytes.append(UInt8(ascii: "}"))
    }
}

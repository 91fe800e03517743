import CSimdjson

extension JSONValue {
    /// Appends the value without white space: the canonical form of type `json`.
    ///
    /// Keeps the order of members and the text of numbers, and escapes strings as little as possible.
    ///
    /// - Parameters:
    ///   - bytes: unchanged if an error is thrown.
    ///   - maximumDepth: the limit of nested arrays and objects, including this value.
    ///   - refusesNUL: whether U+0000 in a string or name is an error.
    /// - Throws: ``JSONError/Reason/repeatedName``, ``JSONError/Reason/tooDeep`` or ``JSONError/Reason/containsNUL``,
    ///   with the position of the name, the bracket or the string.
    package func appendMinified(
        to bytes: inout [UInt8], maximumDepth: Int, refusesNUL: Bool = false
    ) throws(JSONError) {
        let start = bytes.count
        do {
            // The result is never longer than the source.
            try bytes.append(addingCapacity: sourceRange.count) { (output) throws(JSONError) in
                try writeMinified(to: &output, maximumDepth: maximumDepth, refusesNUL: refusesNUL)
            }
        } catch {
            bytes.removeSubrange(start...)
            throw error
        }
    }

    private func writeMinified(
        to output: inout OutputSpan<UInt8>, maximumDepth: Int, refusesNUL: Bool
    ) throws(JSONError) {
        // Iterates over the tape, so that nesting needs no call stack. `isObject` is bounded by the depth.
        var isObject: [Bool] = []
        var isNameNext = false
        var needsComma = false
        var position = word
        while position < end {
            let value = _overrideLifetime(JSONValue(document, word: position), copying: self)
            position = value.isContainer ? position + 1 : value.end
            if value.isClosing {
                output.append(value.letter)
                isObject.removeLast()
                isNameNext = isObject.last ?? false
                needsComma = true
                continue
            }
            if needsComma { output.append(UInt8(ascii: ",")) }
            if value.isContainer {
                try value.checkContainer(depth: isObject.count + 1, maximumDepth: maximumDepth)
                output.append(value.letter)
                isNameNext = value.kind == .object
                isObject.append(isNameNext)
                needsComma = false
                continue
            }
            try value.writeScalar(to: &output, refusesNUL: refusesNUL)
            if isNameNext { output.append(UInt8(ascii: ":")) }
            needsComma = !isNameNext
            isNameNext = !isNameNext && isObject.last ?? false
        }
    }

    private var isClosing: Bool { letter == UInt8(ascii: "}") || letter == UInt8(ascii: "]") }

    private func checkContainer(depth: Int, maximumDepth: Int) throws(JSONError) {
        if depth > maximumDepth { throw JSONError(.tooDeep, at: tokenStart(word)) }
        if let repeated = repeatedMember { throw JSONError(.repeatedName, at: repeated.nameRange.lowerBound) }
    }

    private func writeScalar(to output: inout OutputSpan<UInt8>, refusesNUL: Bool) throws(JSONError) {
        // Numbers and literals are copied.
        guard kind == .string else { return output.append(copying: sourceBytes) }
        let text = stringBytes
        if refusesNUL && text.containsNUL { throw JSONError(.containsNUL, at: tokenStart(word)) }
        output.appendJSONString(text)
    }
}

extension Span where Element == UInt8 {
    package var containsNUL: Bool {
        withUnsafeBufferPointer { $0.contains(0) }
    }
}

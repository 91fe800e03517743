import ThreadExecutor

/// Threads that make load: they block on sockets, which the threads of the cooperative pool must not.
package enum LoadThreads {
    /// Runs a body on each of `count` threads and returns the results in their order, after all have ended.
    ///
    /// - Throws: what the first thread threw.
    package static func run<Value: Sendable>(
        _ count: Int, _ body: @escaping @Sendable (Int) throws -> Value
    ) async throws -> [Value] {
        let results = try await withThrowingTaskGroup(of: (Int, Result<Value, any Error>).self) { group in
            for index in 0..<count {
                let thread = try DedicatedThread(name: "load-\(index)")
                group.addTask {
                    let result = await thread.run { Result { try body(index) } }
                    await thread.close()
                    return (index, result)
                }
            }
            var results = [Result<Value, any Error>?](repeating: nil, count: count)
            for try await (index, result) in group { results[index] = result }
            return results
        }
        return try results.compactMap { try $0?.get() }
    }

    package static func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await run(1) { _ in try body() }[0]
    }
}

/// When a thread did its work, in monotonic nanoseconds.
package struct TimeSpan: Sendable {
    package let start: Int64
    package let end: Int64

    package init(start: Int64, end: Int64) {
        self.start = start
        self.end = end
    }
}

extension [TimeSpan] {
    /// From the first start to the last end.
    package var seconds: Double { Double((map(\.end).max() ?? 0) - (map(\.start).min() ?? 0)) / 1e9 }
}

import Glibc

/// A thread for work that blocks, which the cooperative pool must not.
enum OwnThread {
    private final class Work {
        let run: () -> Void

        init(_ run: @escaping () -> Void) {
            self.run = run
        }
    }

    /// Starts a thread that runs the work and ends; nobody joins it.
    static func start(_ run: @escaping @Sendable () -> Void) throws(HTTPServerError) {
        // Retained once here, released once: by the thread, or below.
        let work = Unmanaged.passRetained(Work(run))
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { context in
                Unmanaged<Work>.fromOpaque(context!).takeRetainedValue().run()
                return nil
            }, work.toOpaque())
        guard code == 0 else {
            work.release()
            throw .cannotStart(reason: HTTPServerError.text(code))
        }
        pthread_detach(thread)
    }
}

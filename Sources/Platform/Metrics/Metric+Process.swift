/// The process.
extension Metric {
    /// What is running.
    package static let buildInfo = Metric(
        "build_info", .gauge, [.version], "The program's version; the value is always 1.")
    /// Whether the process can do its work.
    package static let ready = Metric("ready", .gauge, "1 while the process can do its work, as /readyz says, else 0.")
    /// When the process started.
    package static let processStart = Metric(
        "process_start_time_seconds", .gauge, "When the process started, in seconds since 1970.")
    /// Time on processors.
    package static let processCPU = Metric(
        "process_cpu_seconds_total", .counter, "Time that the process has spent on processors, user and system.")
    /// Memory.
    package static let processMemory = Metric(
        "process_resident_memory_bytes", .gauge, "Memory of the process that is in RAM.")
    /// Descriptors in use.
    package static let processDescriptors = Metric(
        "process_open_fds", .gauge, "File descriptors that are open: files and connections.")
    /// Descriptors allowed.
    package static let processMaximumDescriptors = Metric(
        "process_max_fds", .gauge, "File descriptors that the process may have open.")

    static let process = [
        buildInfo, ready, processStart, processCPU, processMemory, processDescriptors, processMaximumDescriptors,
    ]
}

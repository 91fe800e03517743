/// The process.
extension Metric {
    package static let buildInfo = Metric(
        "build_info", .gauge, [.version], "The program's version; the value is always 1.")
    package static let ready = Metric("ready", .gauge, "1 while the process is ready, as /readyz reports, else 0.")
    package static let processStart = Metric(
        "process_start_time_seconds", .gauge, "Start time of the process, in seconds since 1970.")
    package static let processCPU = Metric(
        "process_cpu_seconds_total", .counter, "CPU time of the process, user and system.")
    package static let processMemory = Metric(
        "process_resident_memory_bytes", .gauge, "Resident memory of the process.")
    package static let processAllocated = Metric(
        "process_allocated_memory_bytes", .gauge, "Memory that the process has allocated and not freed.")
    package static let processDescriptors = Metric(
        "process_open_fds", .gauge, "Open file descriptors: files and connections.")
    package static let processMaximumDescriptors = Metric(
        "process_max_fds", .gauge, "Limit of open file descriptors.")

    static let process = [
        buildInfo, ready, processStart, processCPU, processMemory, processAllocated, processDescriptors,
        processMaximumDescriptors,
    ]
}

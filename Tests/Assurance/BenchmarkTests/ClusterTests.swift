import Glibc
import LoadTools
import Testing

@testable import Benchmark

/// How the processes of brokers and database are found, and the checks of their addresses.
@Suite struct ClusterTests {
    @Test func aProcessNameMayContainParentheses() throws {
        let line = "812 (postgres: a) (b) S 800 812 812 0 -1 4194368 1 2 3 4 150 50 7 3 20 0 1 0 99 1 2"
        let process = try #require(ProcessStatus(line))
        #expect(process.name == "postgres: a) (b")
        #expect(process.parent == 800)
        #expect(process.cpu == 210 * (1_000_000_000 / Int64(sysconf(Int32(_SC_CLK_TCK)))))
        #expect(ProcessStatus("812 (short) S 800") == nil)
        #expect(ProcessStatus("") == nil)
    }

    @Test func theCPUOfAFamilyIsThatOfAProcessAndItsChildren() throws {
        func process(parent: Int, ticks: Int) throws -> ProcessStatus {
            try #require(ProcessStatus("1 (postgres) S \(parent) 1 1 0 -1 0 0 0 0 0 \(ticks) 0 0 0 20 0"))
        }
        let all: [pid_t: ProcessStatus] = [
            10: try process(parent: 1, ticks: 1), 11: try process(parent: 10, ticks: 20),
            12: try process(parent: 10, ticks: 300), 13: try process(parent: 11, ticks: 4000),
        ]
        let one = try #require(all[10]).cpu
        #expect(ProcessStatus.familyCPU(10, in: all) == 321 * one)
    }

    @Test func theProcessThatListensAtAPortIsFound() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, length) == 0 && listen(listener, 1) == 0
                    && getsockname(listener, address, &length) == 0
            }
        }
        try #require(isListening)
        let port = UInt16(bigEndian: address.sin_port)
        #expect(ClusterProcesses.listeners(at: [port]) == [getpid()])
        #expect(ClusterProcesses.listeners(at: []) == [])
    }

    @Test func aConnectionStringWithAPasswordIsRejectedAndNotQuoted() {
        for text in ["host=x password=ocean", "postgresql://user:ocean@host/db", "ocean"] {
            do {
                _ = try Cluster(brokers: "127.0.0.1:9092", database: text)
                Issue.record("\(text) was accepted")
            } catch {
                #expect(!error.description.contains("ocean"))
            }
        }
        #expect(throws: LoadFailure.self) { try Cluster(brokers: "", database: "dbname=weir") }
    }
}

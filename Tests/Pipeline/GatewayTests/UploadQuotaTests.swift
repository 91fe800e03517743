import SyncModel
import Testing

@testable import Gateway

@Suite struct UploadQuotaTests {
    @Test func forgetsCallersWithoutUploads() throws {
        let quota = UploadQuota(maximumBytes: 1000, maximumBytesOfCaller: 1000)
        for caller in 1...100 {
            let caller = SyncID(unchecked: "c\(caller)")
            try quota.enter(caller, bytes: 0)
            try quota.enter(caller, bytes: 1)
            quota.leave(caller, bytes: 1)
            #expect(quota.callerCount == 1)
            quota.leave(caller, bytes: 0)
        }
        #expect(quota.bytes == 0)
        #expect(quota.callerCount == 0)
    }
}

import FanOut
import FanOutLink
import Foundation
import SyncModel
import Testing

/// A device that reads its pages as JSON and checks what holds for every page (I7).
struct StreamClient: Sendable {
    /// The timeStamp of each row held, by id.
    var rows: [String: Int64] = [:]
    var knowledge = OwnerKnowledge()
    var hasMore = true

    /// Pulls a page; returns at once when there is nothing.
    mutating func pull(_ fanOut: TestFanOut, of owner: SyncID = "abc", limit: Int) async throws {
        let request = PagePull(
            owners: [OwnerPull(owner: owner, knowledge: knowledge)], limit: limit, maximumBytes: 1 << 20)
        let pages = try await fanOut.pull(request, within: .seconds(60))
        guard case .rows(let page) = pages[0].content else { throw UnexpectedContent(pages: pages) }
        let parsed = try JSONSerialization.jsonObject(with: Data("[\(page.text)]".utf8))
        let objects = try #require(parsed as? [[String: Any]])
        #expect(objects.count == page.count && page.count <= limit)
        var last: Int64 = 0
        for object in objects {
            let timeStamp = try #require((object["timeStamp"] as? NSNumber)?.int64Value)
            let device = KnowledgeID(unchecked: try #require(object["knowledgeId"] as? String))
            #expect(timeStamp > last)
            #expect(timeStamp > knowledge[device].rawValue)
            last = timeStamp
            rows[try #require(object["id"] as? String)] = timeStamp
        }
        for (device, timeStamp) in page.entries {
            #expect(timeStamp >= knowledge.entries[device] ?? .zero)
            if page.hasMore, timeStamp > knowledge[device] { #expect(timeStamp.rawValue <= last) }
            knowledge.entries[device] = timeStamp
        }
        knowledge.cutFrom = page.cutFrom(known: knowledge.cutFrom)
        hasMore = page.hasMore
    }
}

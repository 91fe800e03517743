import FanOutLink
import NetworkLink
import SyncModel
import SyncWire

/// One message of every kind.
enum LinkSamples {
    static let owner = SyncID(unchecked: "owner é")
    static let device = KnowledgeID(unchecked: "phone")
    static let key = DeviceKey(owner: owner, device: Device(caller: SyncID(unchecked: "caller"), knowledgeID: device))

    static let gatewayMessages: [GatewayMessage] = [
        .hello(epoch: "e1", wantsPassed: true),
        .hello(epoch: "e1", wantsPassed: false),
        .request(
            number: 7, within: .milliseconds(1500),
            .pull(
                PagePull(
                    owners: [
                        OwnerPull(
                            owner: owner,
                            knowledge: OwnerKnowledge(
                                floor: .zero, entries: [device: TimeStamp(9), KnowledgeID(unchecked: "tab"): .zero]),
                            held: [TimeStamp(3), .maximum], leastHead: TimeStamp(12), maximumEntries: 1000),
                        OwnerPull(owner: SyncID(unchecked: "b"), knowledge: OwnerKnowledge(), maximumEntries: 0),
                    ], limit: 100, maximumBytes: 1 << 20))),
        .request(
            number: .max, within: LinkFormat.longestWait,
            .pull(PagePull(owners: [], limit: 0, maximumBytes: -5, isContinued: true))),
        .request(
            number: 0, within: .zero,
            .outcome(
                PartReference(
                    upload: UploadReference(partition: 3, offset: 1 << 40), part: 2, key: key, batch: 12),
                rows: RowWindow(from: 3, to: 700, maximumBytes: 1 << 40))),
        .request(
            number: 1, within: .zero,
            .outcome(
                PartReference(upload: UploadReference(partition: 0, offset: 0), part: 0, key: key, batch: nil),
                rows: nil)),
        .request(number: 2, within: .zero, .keptOutcome(batch: 5, key: key, rows: nil)),
        .request(number: 2, within: .zero, .keptOutcome(batch: 5, key: key, rows: RowWindow(maximumBytes: 0))),
        .request(number: 3, within: .zero, .heads([owner, owner])),
        .cancel([0, 5, .max]), .cancel([]), .subscribe([owner]), .unsubscribe([owner]), .ping(received: 77), .unknown,
    ]

    static let outcome = PartOutcome(
        isRepeat: true,
        results: [
            ChangeResult(
                index: 0, table: 1, id: RowID(unchecked: "r"),
                status: .applied(timeStamp: TimeStamp(5), version: 3, knowledgeID: device), heldFrom: .zero),
            ChangeResult(
                index: 1, table: 0, id: RowID(unchecked: "r"),
                status: .applied(timeStamp: .zero, version: 0, knowledgeID: nil)),
            ChangeResult(
                index: 2, table: 0, id: RowID(unchecked: "r"),
                status: .deleted(timeStamp: TimeStamp(6), version: 3, knowledgeID: device)),
            ChangeResult(
                index: 3, table: 0, id: RowID(unchecked: "r"), status: .conflict,
                locator: RowLocator(knowledgeID: device, timeStamp: TimeStamp(4))),
            ChangeResult(
                index: 4, table: 0, id: RowID(unchecked: "r"), status: .refused(.rowGone, message: "gone")),
        ],
        summary: BatchSummary(
            changeCount: 6, otherOwners: [owner], refusals: [Refusal(index: 5, code: .notGranted, message: "no")]),
        rows: [3: Array("{\"a\":1}".utf8), 4: []], head: TimeStamp(11))

    static let fanOutMessages: [FanOutMessage] = [
        .description(LinkDescription(epoch: "e1", partitions: 64, ready: [0, 5, 63])),
        .description(LinkDescription(epoch: "e1", partitions: 1)),
        .response(
            number: 7,
            .pages([
                OwnerPage(
                    owner: owner,
                    content: .rows(
                        OwnerRows(
                            json: Array("{\"a\":1},{}".utf8), count: 2,
                            entries: [(device, TimeStamp(4)), (KnowledgeID(unchecked: "tab"), .zero)],
                            head: .maximum, hasMore: true))),
                OwnerPage(owner: owner, content: .historyChanged),
                OwnerPage(owner: owner, content: .rows(OwnerRows())),
                OwnerPage(owner: owner, content: .rows(OwnerRows(floor: .zero, head: TimeStamp(3)))),
            ])),
        .response(number: 8, .outcome(outcome)),
        .response(number: 8, .outcome(PartOutcome(refusal: .batchMismatch))),
        .response(number: 8, .outcome(PartOutcome(refusal: .outcomeExpired))),
        .response(number: 8, .outcome(PartOutcome(refusal: .historyChanged))),
        .response(number: 9, .keptOutcome(outcome)), .response(number: 9, .keptOutcome(nil)),
        .response(number: 0, .heads([.zero, TimeStamp(8), .maximum])), .response(number: 0, .heads([])),
        .response(number: 1, .failure(.pending)), .response(number: 1, .failure(.notReady("it is rebuilt"))),
        .response(number: 1, .failure(.closed)), .moves([owner: TimeStamp(3)]), .moves([:]),
        .passed([
            StreamReport(partition: 0),
            StreamReport(
                partition: 1,
                uploads: [1: UploadProgress(offset: 2, part: 0), 3: UploadProgress(offset: 0, part: 7)],
                partsElsewhere: [0: 2, 3: 0],
                largeParts: [
                    StreamReport.LargePart(
                        source: 3, progress: UploadProgress(offset: 0, part: 7),
                        device: Device(caller: owner, knowledgeID: device), touchedBytes: 4096),
                    StreamReport.LargePart(
                        source: 0, progress: UploadProgress(offset: 0, part: 0),
                        device: Device(caller: owner, knowledgeID: device), touchedBytes: .max),
                ]),
        ]), .passed([]), .pong, .goodbye("the fan-out stops"), .unknown,
    ]
}

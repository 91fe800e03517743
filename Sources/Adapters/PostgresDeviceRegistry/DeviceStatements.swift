import DeviceRegistry
import Postgres
import SyncModel
import SyncWire

/// The statements over `weir_device_registry`.
struct DeviceStatements: Sendable {
    let upsert: String
    let forget: String
    let list: String
    let one: String
    let rename: String
    let positions: String
    let raise: String

    /// - Parameters:
    ///   - table: its qualified name.
    ///   - devicePositions: that of the positions.
    init(table: String, devicePositions: String) {
        // In one order in all gateways, so that they do not wait for each other in a circle.
        upsert = """
            INSERT INTO \(table) AS d (caller, knowledge_id, reported_name, platform, app_version, first_seen, last_seen,
                last_upload, time_stamp, knowledge)
            SELECT caller, knowledge_id, reported_name, platform, app_version, \(Self.time("first_seen")),
                \(Self.time("last_seen")), \(Self.time("last_upload")), time_stamp, knowledge
            FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[],
                $9::bigint[], $10::bytea[]) AS s (caller, knowledge_id, reported_name, platform, app_version, first_seen,
                last_seen, last_upload, time_stamp, knowledge)
            ORDER BY caller COLLATE "C", knowledge_id COLLATE "C"
            ON CONFLICT (caller, knowledge_id) DO UPDATE SET
                reported_name = coalesce(excluded.reported_name, d.reported_name),
                platform = coalesce(excluded.platform, d.platform),
                app_version = coalesce(excluded.app_version, d.app_version),
                first_seen = least(d.first_seen, excluded.first_seen),
                last_seen = greatest(d.last_seen, excluded.last_seen),
                last_upload = greatest(d.last_upload, excluded.last_upload),
                time_stamp = \(Self.newer("time_stamp")),
                knowledge = \(Self.newer("knowledge"))
            """
        forget = """
            WITH above AS (
                SELECT caller, knowledge_id, row_number() OVER (PARTITION BY caller ORDER BY last_seen DESC, knowledge_id)
                    AS place
                FROM \(table) WHERE caller = ANY (SELECT caller FROM \(table) WHERE caller = ANY ($1::text[]) GROUP BY caller
                    HAVING count(*) > $2::bigint)
            ), locked AS (
                SELECT d.caller, d.knowledge_id FROM \(table) AS d JOIN above AS a USING (caller, knowledge_id)
                WHERE a.place > $2::bigint ORDER BY d.caller, d.knowledge_id FOR UPDATE OF d
            ), forgotten AS (
                DELETE FROM \(devicePositions) AS p USING locked AS l
                WHERE p.caller = l.caller AND p.knowledge_id = l.knowledge_id
            )
            DELETE FROM \(table) AS d USING locked AS l WHERE d.caller = l.caller AND d.knowledge_id = l.knowledge_id
            """
        positions = "SELECT name, value FROM \(devicePositions) WHERE caller = $1::text AND knowledge_id = $2::text"
        // In one order in all gateways, as above.
        raise = """
            INSERT INTO \(devicePositions) AS p (caller, knowledge_id, name, value)
            SELECT caller, knowledge_id, name, value
            FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS s (caller, knowledge_id, name, value)
            ORDER BY caller COLLATE "C", knowledge_id COLLATE "C", name COLLATE "C"
            ON CONFLICT (caller, knowledge_id, name) DO UPDATE SET value = excluded.value
            WHERE p.value < excluded.value
            """
        let columns = """
            knowledge_id, given_name, reported_name, platform, app_version, \(Self.number("first_seen")),
            \(Self.number("last_seen")), \(Self.number("last_upload")), knowledge
            """
        list = """
            SELECT \(columns) FROM \(table) WHERE caller = $1::text AND knowledge_id > $2::text
            ORDER BY knowledge_id LIMIT $3::bigint
            """
        one = "SELECT \(columns) FROM \(table) WHERE caller = $1::text AND knowledge_id = $2::text"
        rename = """
            UPDATE \(table) SET given_name = $3::text WHERE caller = $1::text AND knowledge_id = $2::text RETURNING 1
            """
    }

    /// Of a stored and a new value that of the later sighting, if it has one.
    private static func newer(_ column: String) -> String {
        "CASE WHEN excluded.last_seen >= d.last_seen THEN coalesce(excluded.\(column), d.\(column)) "
            + "ELSE coalesce(d.\(column), excluded.\(column)) END"
    }

    /// A time from microseconds since 1970, exactly.
    private static func time(_ column: String) -> String {
        "timestamptz 'epoch' + (\(column) / 1000000) * interval '1 second' "
            + "+ (\(column) % 1000000) * interval '1 microsecond'"
    }

    private static func number(_ column: String) -> String { "(extract(epoch FROM \(column)) * 1000000)::bigint" }

    static func callers(_ sightings: some Sequence<DeviceSighting>) -> BinaryArray {
        var callers = BinaryArray(.text)
        for caller in Set(sightings.map(\.device.caller.text)) { callers.append(caller) }
        return callers
    }

    static func parameters(_ sightings: some Sequence<DeviceSighting>) -> PostgresParameters {
        var texts = Array(repeating: BinaryArray(.text), count: 5)
        var numbers = Array(repeating: BinaryArray(.bigint), count: 4)
        var knowledge = BinaryArray(.bytea)
        for sighting in sightings {
            let (device, description) = (sighting.device, sighting.description)
            let values = [
                device.caller.text, device.knowledgeID.text, description.name, description.platform,
                description.appVersion,
            ]
            for (index, value) in values.enumerated() { texts[index].append(value) }
            let times = [
                sighting.firstSeen, sighting.lastSeen, sighting.lastUpload,
                sighting.knowledge?[device.caller]?.rawValue,
            ]
            for (index, time) in times.enumerated() { numbers[index].append(time) }
            if let positions = sighting.knowledge {
                knowledge.append(bytes: DevicePositions(positions).encode().span)
            } else {
                knowledge.appendNull()
            }
        }
        return PostgresParameters(texts + numbers + [knowledge])
    }

    static func parameters(_ positions: some Sequence<DevicePosition>) -> PostgresParameters {
        var texts = Array(repeating: BinaryArray(.text), count: 3)
        var values = BinaryArray(.bigint)
        for position in positions {
            let device = position.device
            for (index, text) in [device.caller.text, device.knowledgeID.text, position.name].enumerated() {
                texts[index].append(text)
            }
            values.append(position.value)
        }
        return PostgresParameters(texts + [values])
    }

    /// The device of a row with the columns of ``list`` and ``one``.
    static func device(in rows: borrowing PostgresResult, _ row: Int) throws -> RegisteredDevice {
        guard let knowledgeID = KnowledgeID(try rows.text(row, 0)) else {
            throw DeviceRegistryError("weir_device_registry holds an invalid knowledge_id")
        }
        let description = DeviceDescription(
            name: rows.isNull(row, 2) ? nil : try rows.text(row, 2),
            platform: rows.isNull(row, 3) ? nil : try rows.text(row, 3),
            appVersion: rows.isNull(row, 4) ? nil : try rows.text(row, 4))
        return RegisteredDevice(
            knowledgeID, givenName: rows.isNull(row, 1) ? nil : try rows.text(row, 1), description: description,
            firstSeen: try rows.bigint(row, 5), lastSeen: try rows.bigint(row, 6),
            lastUpload: rows.isNull(row, 7) ? nil : try rows.bigint(row, 7),
            knowledge: rows.isNull(row, 8) ? [:] : try DevicePositions(decoding: rows.bytes(row, 8)).owners)
    }
}

extension BinaryArray {
    fileprivate mutating func append(_ value: String?) {
        if let value { append(value) } else { appendNull() }
    }

    fileprivate mutating func append(_ value: Int64?) {
        if let value { append(value) } else { appendNull() }
    }
}

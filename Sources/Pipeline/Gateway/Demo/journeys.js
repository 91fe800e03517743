// Where each batch has been seen, and when. Every time is one that a device in this page has observed, in milliseconds on one clock:
// a request that was sent, an answer or an event that arrived, a row that was stored.

const KEPT = 8; // batches that are shown
const KEPT_ARRIVALS = 2000; // rows of each device: a receiver may have a row before the sender knows its timeStamp

export class Journeys {
  /** @param onChange called with the journey that has changed. */
  constructor(onChange) {
    this.onChange = onChange;
    this.all = []; // the newest first
    this.seen = new Map(); // what each device has received
  }

  /** A device sends a batch, for the first time or again. */
  sent(device, batch, time) {
    let journey = this.all.find((j) => j.device === device && j.number === batch.number && !j.outcome);
    if (!journey) {
      const changes = JSON.parse(batch.body).changes;
      journey = { device, number: batch.number, changes, attempts: 0, arrivals: new Map(), results: null, refused: null };
      this.all = [journey, ...this.all].slice(0, KEPT);
    }
    Object.assign(journey, { sent: time, durable: null, outcome: null, error: null, attempts: journey.attempts + 1 });
    this.onChange(journey);
    return journey;
  }

  durable(journey, time) {
    journey.durable = time;
    this.onChange(journey);
  }

  /** The outcome has arrived at the sender: the batch was ordered, and the fan-out has its results. */
  outcome(journey, outcome, time) {
    Object.assign(journey, { outcome: time, results: outcome.results ?? null, refused: outcome.refused ?? null });
    journey.rows = [];
    journey.changes.forEach((change, index) => {
      const result = outcome.results?.[index];
      if ((result?.status === "applied" || result?.status === "deleted") && result.timeStamp > 0) {
        journey.rows.push({ table: change.table, id: change.id, timeStamp: result.timeStamp });
      }
    });
    journey.head = Math.max(0, ...journey.rows.map((row) => row.timeStamp));
    for (const device of this.seen.keys()) this.match(journey, device);
    this.onChange(journey);
  }

  failed(journey, error) {
    journey.error = error;
    this.onChange(journey);
  }

  /** A device's event stream has named a head. */
  event(device, head, time) {
    this.of(device).heads.push({ head, time });
    this.rematch(device);
  }

  /** A device, which is online since a time, has stored rows of a pull. */
  pulled(device, rows, time, onlineSince) {
    const { arrivals } = this.of(device);
    for (const { table, id, timeStamp } of rows) arrivals.push({ table, id, timeStamp, time, onlineSince });
    this.rematch(device);
  }

  of(device) {
    if (!this.seen.has(device)) this.seen.set(device, { heads: [], arrivals: [] });
    const seen = this.seen.get(device);
    for (const list of Object.values(seen)) if (list.length > KEPT_ARRIVALS) list.splice(0, list.length - KEPT_ARRIVALS / 2);
    return seen;
  }

  rematch(device) {
    for (const journey of this.all) if (this.match(journey, device)) this.onChange(journey);
  }

  /** Finds when a device was told of a batch and when it had all of its rows. Returns whether something new was found. */
  match(journey, device) {
    if (!journey.rows?.length || device === journey.device) return false;
    const arrival = journey.arrivals.get(device) ?? { event: null, row: null, isLate: false };
    const before = { ...arrival };
    const { heads, arrivals } = this.of(device);
    arrival.event ??= heads.find((h) => h.head >= journey.head && h.time >= journey.sent)?.time ?? null;
    if (arrival.row === null) {
      // The row itself, or a later version of it.
      const found = journey.rows.map((row) => arrivals.find(
        (a) => a.table === row.table && a.id === row.id && a.timeStamp >= row.timeStamp));
      if (found.every(Boolean)) {
        arrival.row = Math.max(...found.map((a) => a.time));
        arrival.isLate = found.some((a) => a.onlineSince > journey.sent); // it was offline, or not there
      }
    }
    journey.arrivals.set(device, arrival);
    return arrival.event !== before.event || arrival.row !== before.row;
  }

  forget(device) {
    this.seen.delete(device);
    this.all = this.all.filter((j) => j.device !== device);
    for (const journey of this.all) journey.arrivals.delete(device);
  }
}

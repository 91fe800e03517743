// Draws the way of a batch through the stages, and the table of measured times. What is lit is what a device has observed: between the
// 202 and the outcome a client does not see which stage has the batch, so these stages are lit together.

import { element } from "./cells.js";
import { rowLabel } from "./rows.js";

const SLOW_DURATION = 2600; // milliseconds that a slowed replay takes, about
const FACTORS = [2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000];

/** Milliseconds for people. */
export function duration(time) {
  if (time < 10) return `${time.toFixed(1)} ms`;
  return time < 1000 ? `${Math.round(time)} ms` : `${(time / 1000).toFixed(1)} s`;
}

export class Path {
  /**
   * @param entries the page's devices at the time of the call.
   * @param tableOf a table of the schema by its name.
   */
  constructor(entries, tableOf) {
    Object.assign(this, { entries, tableOf });
    const find = (id) => document.getElementById(id);
    this.sender = find("sender");
    this.receivers = find("receivers");
    this.text = find("path-text");
    this.replay = find("replay");
    this.slow = find("slow");
    this.slow.checked = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.groups = new Map([...document.querySelectorAll(".group")].map((group) => [group.dataset.group, group]));
    this.replay.addEventListener("click", () => this.play());
    this.table = find("measured");
  }

  entryOf(device) { return this.entries().find((entry) => entry.device === device); }

  /** A journey has changed: the newest one is drawn as far as it is observed. */
  update(journey, all) {
    this.showTable(all);
    if (!journey || journey !== all[0]) return;
    const isNew = journey !== this.journey || journey.attempts !== this.attempts;
    if (isNew) this.halt();
    Object.assign(this, { journey, attempts: journey.attempts });
    if (isNew) this.isComplete = false;
    const wasComplete = this.isComplete;
    this.isComplete = journey.outcome !== null && this.online(journey).every((entry) => this.hasRows(journey, entry));
    if (this.isComplete && !wasComplete) {
      this.text.textContent = this.summary(journey);
      if (this.slow.checked && this.factor(journey) > 1) return this.play();
    }
    if (!this.frame) this.paint(Infinity);
  }

  /** The path with the devices as they are now, before anything was sent too. */
  refresh() {
    if (!this.frame) this.paint(Infinity);
  }

  online(journey) {
    return journey.rows?.length ? this.others(journey).filter((entry) => entry.session.onlineSince !== null) : [];
  }

  others(journey) { return this.entries().filter((entry) => entry.device !== journey?.device); }

  hasRows(journey, entry) { return (journey.arrivals.get(entry.device)?.row ?? null) !== null; }

  // A slow replay of what was measured

  /** How long it took until the last was observed, on devices that were online all the time. */
  total(journey) {
    const times = [...journey.arrivals.values()].map((arrival) => (arrival.isLate ? 0 : arrival.row ?? 0));
    return Math.max(journey.durable ?? 0, journey.outcome ?? 0, ...times) - journey.sent;
  }

  factor(journey) {
    const wanted = SLOW_DURATION / Math.max(this.total(journey), 0.1);
    return FACTORS.findLast((factor) => factor <= wanted) ?? 1;
  }

  play() {
    this.halt();
    const { journey } = this, total = this.total(journey), factor = this.factor(journey), start = performance.now();
    this.replay.textContent = `${factor} times slower`;
    this.replay.disabled = true;
    const step = () => {
      const elapsed = (performance.now() - start) / factor;
      this.frame = elapsed < total + 200 / factor ? requestAnimationFrame(step) : null;
      this.paint(this.frame ? elapsed : Infinity);
      if (!this.frame) this.halt();
    };
    this.frame = requestAnimationFrame(step);
  }

  halt() {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    this.replay.disabled = false;
    this.replay.textContent = "Replay slowly";
  }

  // Drawing

  /** Draws what was observed up to a time after the request. */
  paint(elapsed) {
    const { journey } = this;
    this.replay.hidden = !this.isComplete || this.factor(journey) === 1;
    const since = (time) => (time === null || time === undefined ? null : time - journey.sent);
    const durable = journey && since(journey.durable), outcome = journey && since(journey.outcome);
    this.paintGroup("durable", elapsed, 0, durable ?? (journey?.refused ? outcome : null), "durable");
    this.paintGroup("outcome", elapsed, durable, outcome, "ordered, outcome known");
    this.paintSender(elapsed, outcome);
    this.receivers.replaceChildren(...this.others(journey).map((entry) => {
      const arrival = journey?.arrivals.get(entry.device);
      const event = since(arrival?.event), row = since(arrival?.row);
      const isThere = row !== null && row <= elapsed;
      const chip = element("div", { className: `chip${isThere ? " lit" : ""}` }, element("strong", { textContent: entry.name }),
        element("small", { textContent: this.arrivalText(journey, entry, event, row, elapsed) }));
      chip.style.setProperty("--color", entry.color);
      return chip;
    }));
  }

  /** A group is active from the observation before it until its own. */
  paintGroup(name, elapsed, start, end, what) {
    const group = this.groups.get(name), { journey } = this;
    const isReached = journey && end !== null && end <= elapsed;
    const isActive = journey && !isReached && !journey.error && start !== null && start <= elapsed;
    group.classList.toggle("lit", Boolean(isReached));
    group.classList.toggle("active", Boolean(isActive));
    const share = isReached ? 1 : isActive && end !== null ? (elapsed - start) / (end - start) : 0;
    group.querySelector("i").style.setProperty("--share", share);
    group.querySelector("output").textContent = isReached ? `${what} after ${duration(end)}` : what;
  }

  paintSender(elapsed, outcome) {
    const { journey } = this, entry = journey && this.entryOf(journey.device);
    if (!entry) return;
    this.sender.style.setProperty("--color", entry.color);
    const isDone = outcome !== null && outcome <= elapsed;
    this.sender.classList.add("lit");
    this.sender.replaceChildren(element("strong", { textContent: entry.name }),
      element("small", { textContent: `batch ${journey.number}, ${changes(journey)}` }),
      element("small", { textContent: isDone ? results(journey) : journey.error ? failure(journey.error) : "sent" }));
  }

  arrivalText(journey, entry, event, row, elapsed) {
    const isOffline = entry.session.onlineSince === null;
    const told = event !== null && event <= elapsed ? `event ${duration(event)}` : "";
    if (row !== null && row <= elapsed) return `${told && event < row ? `${told}, ` : ""}row ${duration(row)}`;
    if (told) return told;
    if (isOffline) return "offline";
    if (journey && journey.outcome !== null && !journey.rows.length) return "nothing to receive";
    return "waits for an event";
  }

  summary(journey) {
    const entry = this.entryOf(journey.device), online = this.online(journey);
    const name = `${entry?.name}’s batch ${journey.number}`;
    if (!journey.rows.length) return `${name}: ${results(journey)}.`;
    if (!online.length) return `${name} is ordered. No other device is online.`;
    const last = Math.max(...online.map((e) => journey.arrivals.get(e.device).row)) - journey.sent;
    return `${name} was on ${online.map((e) => e.name).join(", ")} after ${duration(last)}.`;
  }

  // The table

  showTable(all) {
    const scale = Math.max(10, ...all.filter((j) => j.outcome !== null).map((j) => this.total(j)));
    this.table.replaceChildren(...all.map((journey) => this.tableRow(journey, scale)));
  }

  tableRow(journey, scale) {
    const entry = this.entryOf(journey.device), since = (time) => time - journey.sent;
    const first = journey.changes[0];
    const known = entry?.device.valuesOf(entry.device.owner(first.syncId ?? ""), first.table, first.id);
    const label = rowLabel(this.tableOf(first.table), { ...known, ...first.values }, first.id);
    const head = element("th", { scope: "row" }, element("b", { textContent: `${entry?.name} ${journey.number}` }),
      element("small", { textContent: `${first.deleted ? "deletion of " : ""}${first.table} “${label}”`
        + (journey.changes.length > 1 ? ` and ${journey.changes.length - 1} more` : "") }));
    head.style.setProperty("--color", entry?.color);
    const time = (value) => (value === null ? "…" : duration(since(value)));
    const arrivals = this.others(journey).flatMap((other) => {
      const { row, isLate } = journey.arrivals.get(other.device) ?? { row: null };
      return row === null ? [] : [{ other, row, isLate }];
    });
    const elsewhere = element("td", {}, ...arrivals.map(({ other, row, isLate }) => {
      const text = `${other.name} ${duration(since(row))}${isLate ? ", was offline" : ""}`;
      const span = element("span", { className: "arrival", textContent: text });
      span.style.setProperty("--color", other.color);
      return span;
    }));
    const place = (name, from, to, color) => {
      const part = element("i", { className: name });
      part.style.setProperty("--from", Math.min(from / scale, 1));
      part.style.setProperty("--to", Math.min(to / scale, 1));
      if (color) part.style.setProperty("--color", color);
      return part;
    };
    const track = element("div", { className: "track" });
    if (journey.durable !== null) track.append(place("durable", 0, since(journey.durable)));
    if (journey.outcome !== null) track.append(place("ordered", since(journey.durable ?? journey.sent), since(journey.outcome)));
    for (const { other, row, isLate } of arrivals) if (!isLate) track.append(place("dot", since(row), since(row), other.color));
    head.append(track);
    const outcome = element("td", {}, time(journey.outcome), element("small", { textContent: journey.outcome === null ? "" : results(journey) }));
    return element("tr", {}, head, element("td", { textContent: time(journey.durable) }), outcome, elsewhere);
  }
}

const changes = (journey) => `${journey.changes.length} change${journey.changes.length === 1 ? "" : "s"}`;

function failure(error) {
  if (error.isPermanent) return `answer ${error.status}: it waits`;
  return error.status ? `answer ${error.status}: it is sent again` : "no answer: it is sent again";
}

/** How the changes of a batch were decided: "2 applied, 1 conflict". */
function results(journey) {
  if (journey.refused) return journey.refused.code;
  const counts = new Map();
  for (const { status } of journey.results ?? []) counts.set(status, (counts.get(status) ?? 0) + 1);
  return Array.from(counts, ([status, number]) => (journey.results.length === 1 ? status : `${number} ${status}`)).join(", ");
}

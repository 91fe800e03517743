// The page: which devices there are, whose data they have, and what they share.

import { Card } from "./card.js";
import { element } from "./cells.js";
import { Device } from "./device.js";
import { Journeys } from "./journeys.js";
import { Path } from "./path.js";
import { Server } from "./server.js";
import { Session } from "./session.js";
import * as storage from "./storage.js";

const KINDS = ["Phone", "Laptop", "Tablet", "Desktop"].map((name, index) => ({ name, color: `var(--device-${index + 1})` }));
const FIRST_OWNER = "ada";
const POLICIES = {
  lastSyncWins: "lastSyncWins: column by column, the device that syncs last wins.",
  lastWriteWins: "lastWriteWins: the later edit wins, whichever arrives first; the earlier one is a conflict.",
  checkBase: "checkBase: an edit of a version that is not the newest is a conflict.",
};

const find = (id) => document.getElementById(id);

/** Waits before another attempt: a second, or as long as the server says. */
const pauseAfter = (error) => new Promise((resolve) => setTimeout(resolve, 1000 * Math.max(1, error.retryAfter ?? 1)));

class Page {
  entries = []; // the devices that are shown
  usesTokens = false;
  schema = null;
  isTaken = false; // another tab has the devices: nothing is sent or stored any more

  constructor() {
    this.record = storage.page.load() ?? { owner: FIRST_OWNER, devices: KINDS.slice(0, 2).map(({ name }) => ({ name, isOnline: true })), table: null };
    this.path = new Path(() => this.entries, (name) => this.schema?.tables.find((t) => t.name === name));
    this.journeys = new Journeys((journey) => this.path.update(journey, this.journeys.all));
    find("add-device").addEventListener("click", () => this.add());
    find("begin-again").addEventListener("click", () => this.askToBeginAgain());
    find("cancel").addEventListener("click", () => find("again").close("cancel"));
    find("again").addEventListener("close", (event) => event.target.returnValue === "begin" && this.beginAgain());
    addEventListener("online", () => { for (const { session } of this.entries) session.wake(); });
  }

  async start() {
    await this.learn();
    if (this.isTaken) return;
    for (const { name, isOnline } of this.record.devices) this.open(name, isOnline);
    find("main").hidden = false;
    this.render();
    if (this.schema) this.setSchema(this.schema);
  }

  /** Another tab has taken the devices. */
  leave() {
    this.isTaken = true;
    for (const { session } of this.entries) session.setOnline(false);
    find("again").close("cancel");
    find("begin-again").disabled = true;
    find("main").hidden = true;
    find("elsewhere").hidden = false;
    this.notify("");
  }

  save() {
    this.record.devices = this.entries.map(({ name, isOnline }) => ({ name, isOnline }));
    this.store("The page", () => storage.page.save(this.record));
  }

  /** Stores something, or says why the browser does not keep it, unless another tab has the devices. Returns whether it does. */
  store(name, change) {
    if (this.isTaken) return false;
    try {
      change();
      return true;
    } catch (error) {
      if (!(error instanceof storage.StorageFull)) throw error;
      this.notify(`${name}: ${error.message}`);
      return false;
    }
  }

  /** Finds out how callers are named, and which tables there are. */
  async learn() {
    const server = new Server(() => this.named());
    while (!this.isTaken) {
      try {
        this.schema = await server.schema();
        this.notify("");
        return;
      } catch (error) {
        if (error.status === 401 && /^Bearer/i.test(error.challenge ?? "")) {
          this.usesTokens = true;
          this.notify("");
          return;
        }
        if (!this.isTaken) this.notify(`The server does not answer: ${error.message}`);
        await pauseAfter(error);
      }
    }
  }

  named() { return { "X-Sync-Id": encodeURIComponent(this.record.owner) }; }

  // Devices

  /** Shows a device, a new one if the browser has none of this name; null if it cannot be kept. */
  open(name, isOnline) {
    const kind = KINDS.find((k) => k.name === name);
    const entry = { ...kind, isOnline, tokens: storage.tokenStore(name) };
    if (!this.store(name, () => { entry.device = new Device(storage.deviceStore(name)); })) return null;
    entry.token = this.usesTokens ? entry.tokens.load() : null;
    entry.server = new Server(() => (this.usesTokens ? { Authorization: `Bearer ${entry.token}` } : this.named()));
    entry.session = new Session(entry.device, entry.server, this.journeys, { isOnline: false, onChange: () => this.changed(entry) });
    entry.card = new Card(entry, this);
    this.entries.push(entry);
    find("devices").append(entry.card.element);
    this.connect(entry);
    return entry;
  }

  connect(entry) {
    entry.session.keepAlive = this.schema?.limits.keepAlive;
    entry.session.setOnline(entry.isOnline && (!this.usesTokens || Boolean(entry.token)));
  }

  setOnline(entry, isOnline) {
    entry.isOnline = isOnline;
    this.connect(entry);
    this.save();
    this.render();
  }

  setToken(entry, token) {
    if (!this.store(entry.name, () => entry.tokens.save(token))) return;
    entry.token = token;
    if (entry.session.isOnline) entry.session.restart();
    this.connect(entry);
  }

  add() {
    const kind = KINDS.find(({ name }) => !this.entries.some((entry) => entry.name === name));
    if (!kind) return;
    this.notify("");
    const entry = this.open(kind.name, true);
    if (!entry) return;
    if (this.schema) entry.card.setSchema(this.schema, this.table);
    this.save();
    this.render();
    entry.card.element.scrollIntoView({ block: "nearest" });
  }

  get mayRemove() { return this.entries.length > 2; }

  remove(entry) {
    entry.session.setOnline(false);
    entry.card.element.remove();
    this.journeys.forget(entry.device);
    this.entries = this.entries.filter((e) => e !== entry);
    storage.removeDevice(entry.name);
    this.save();
    this.render();
    this.path.update(null, this.journeys.all);
  }

  /** Who has written a row: a device of this page, or another one. */
  writerOf = (knowledgeId) => {
    const entry = this.entries.find((e) => e.device.state.knowledgeId === knowledgeId);
    return entry ?? { name: "another device", color: "var(--muted)" };
  };

  // Drawing

  changed(entry) {
    if (!this.entries.includes(entry)) return;
    const version = entry.device.state.schemaVersion;
    if (version && version !== this.schema?.schemaVersion) this.learnSchema(entry);
    entry.card.render();
    this.path.refresh();
  }

  /** The server has another schema version than the page, or the page has none yet. */
  async learnSchema(entry) {
    if (this.isLearning) return;
    this.isLearning = true;
    let mayRepeat = false;
    try {
      const schema = await entry.server.schema();
      this.notify("");
      this.setSchema(schema);
    } catch (error) {
      if (!this.isTaken) this.notify(`The tables are not known: ${error.message}`);
      mayRepeat = !error.isPermanent;
      if (mayRepeat) await pauseAfter(error);
    } finally {
      this.isLearning = false;
    }
    // What has changed meanwhile has asked in vain.
    if (mayRepeat) for (const e of this.entries) if (e.session.isOnline) this.changed(e);
  }

  get table() {
    const { tables } = this.schema;
    return tables.find((t) => t.name === this.record.table) ?? tables[0];
  }

  setSchema(schema) {
    this.schema = schema;
    find("tables").replaceChildren(element("legend", { textContent: "Table" }), ...schema.tables.map((table) => {
      const input = element("input", { type: "radio", name: "table", value: table.name, checked: table === this.table });
      input.addEventListener("change", () => this.setTable(table.name));
      return element("label", {}, input, element("span", { textContent: table.name }));
    }));
    find("tables").hidden = false;
    for (const entry of this.entries) entry.session.keepAlive = schema.limits.keepAlive;
    this.setTable(this.table.name);
  }

  setTable(name) {
    this.record.table = name;
    this.save();
    find("policy").textContent = POLICIES[this.table.policy] ?? this.table.policy;
    for (const { card } of this.entries) card.setSchema(this.schema, this.table);
    this.render();
  }

  render() {
    find("account").textContent = this.usesTokens ? "each device has a token" : `owner ${this.record.owner}`;
    find("add-device").hidden = this.entries.length === KINDS.length;
    for (const { card } of this.entries) card.render();
    this.path.refresh();
  }

  notify(text) {
    find("notice").textContent = text;
    find("notice").hidden = !text;
  }

  // Beginning again

  askToBeginAgain() {
    find("owner-field").hidden = find("owner-hint").hidden = find("owner").disabled = this.usesTokens;
    find("owner").value = this.record.owner;
    find("again").returnValue = "cancel";
    find("again").showModal();
  }

  beginAgain() {
    if (this.isTaken) return;
    for (const { session } of this.entries) session.setOnline(false);
    storage.removeAll();
    const devices = KINDS.slice(0, 2).map(({ name }) => ({ name, isOnline: true }));
    storage.page.save({ owner: find("owner").value.trim() || this.record.owner, devices, table: this.record.table });
    location.reload();
  }
}

async function begin() {
  const isOurs = await storage.claim(() => globalThis.weir.leave());
  find("elsewhere").hidden = isOurs;
  if (!isOurs) return;
  globalThis.weir = new Page(); // also for the browser's console
  await globalThis.weir.start();
}

find("take-over").addEventListener("click", storage.takeOver);
begin();

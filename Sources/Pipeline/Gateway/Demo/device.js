// A device: what it keeps, and the rules by which answers and edits change it. docs/clients.md explains each rule.
// Nothing here sends a request or touches the document.

const MOST_CHANGES = 1000;
const MOST_BYTES = 1 << 20; // of a batch's changes

/** An id that is new; ids that are made later are greater, so that rows are listed in the order of their creation. */
export function newID() {
  const random = crypto.getRandomValues(new Uint8Array(8));
  return Date.now().toString(36) + Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Whether two JSON values are equal; the order of members does not count. */
export function same(a, b) {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  const names = Object.keys(a);
  return Array.isArray(a) === Array.isArray(b) && names.length === Object.keys(b).length
    && names.every((name) => Object.hasOwn(b, name) && same(a[name], b[name]));
}

const keyOf = (owner, table, id) => JSON.stringify([owner, table, id]);

export class Device {
  /**
   * @param store keeps a text: `load()` returns it or null, `save(text)` replaces it as a whole or throws.
   * @param makeID makes the knowledgeId of a new device.
   */
  constructor(store, makeID = newID) {
    this.store = store;
    this.makeID = makeID;
    this.limit = 1000;
    this.mostChanges = MOST_CHANGES;
    this.now = () => new Date().toISOString();
    this.saved = store.load();
    this.state = this.saved ? JSON.parse(this.saved) : {
      knowledgeId: makeID(), lastBatch: 0, syncId: null, epoch: null, schemaVersion: null, cutFrom: null, mustDrain: false,
      owners: {}, // the access to each granted owner
      rows: {}, // the server's rows as last received; owner is "" for the account itself
      edits: [], // in the order in which they were begun; base: null while the edit has seen the newest version of the row;
      // wasSent: in a batch that has no outcome and never will
      batch: null, // the one that has no outcome yet: its number and the text that is sent
      vector: [], aside: [], nextAside: 1,
    };
    if (!this.saved) this.transaction(() => {});
  }

  /** Changes the state and stores it; the state is unchanged if either fails. */
  transaction(change) {
    try {
      const result = change(this.state);
      const text = JSON.stringify(this.state);
      this.store.save(text);
      this.saved = text;
      return result;
    } catch (error) {
      if (this.saved) this.state = JSON.parse(this.saved);
      throw error;
    }
  }

  // What the user does

  /** Creates a row, or edits the columns in values. */
  put(table, id, values, owner = "") { this.transaction(() => this.edit(owner, table, id, values, this.now())); }

  delete(table, id, owner = "") { this.transaction(() => this.edit(owner, table, id, null, this.now())); }

  /** Makes an edit that is aside again, on the row as it is now. */
  resend(number) {
    this.transaction((state) => {
      const aside = state.aside.find((a) => a.number === number);
      if (!aside) return;
      this.edit(aside.owner, aside.table, aside.id, aside.deleted ? null : aside.values, this.now());
      state.aside = state.aside.filter((a) => a !== aside);
    });
  }

  discard(number) {
    this.transaction((state) => { state.aside = state.aside.filter((a) => a.number !== number); });
  }

  // What is shown

  /** The rows of a table: what the user sees, the server's row beneath, and the edits over it. A deletion that is pending has no values. */
  rows(table) {
    const keys = new Map();
    for (const entry of [...Object.values(this.state.rows), ...this.edits()]) {
      if (entry.table === table) keys.set(keyOf(entry.owner, entry.table, entry.id), entry);
    }
    const seen = [];
    for (const [key, { owner, id }] of keys) {
      const row = this.state.rows[key], edits = this.edits(owner, table, id);
      const values = this.visible(row, edits);
      if (values || (row && !row.deleted)) seen.push({ key, owner, table, id, values, row, edits });
    }
    return seen.sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : a.owner < b.owner ? -1 : 1));
  }

  /** The values of a row as far as the device knows them, of a deleted one too. */
  valuesOf(owner, table, id) {
    const edited = this.edits(owner, table, id).map((e) => e.values);
    return Object.assign({}, this.state.rows[keyOf(owner, table, id)]?.values, ...edited);
  }

  /** The edits without an outcome. */
  pending() { return this.edits().map((e) => ({ ...changeOf(e), sent: e.sent })); }

  /** The edits that the server did not accept, with the reason and the server's row. */
  aside() {
    return this.state.aside.map((a) => ({ ...changeOf(a), number: a.number, code: a.code, message: a.message, row: a.row }));
  }

  get knowledge() { return this.state.vector; }

  /** The newest timeStamp of an owner up to which the device has everything. */
  floor(syncId) {
    return this.state.vector.find((k) => k.syncId === syncId && k.knowledgeId === "*")?.lastTimeStamp ?? 0;
  }

  mayWrite(owner) { return (this.state.owners[owner] ?? (owner === "" ? "write" : "read")) === "write"; }

  // Edits

  /** Adds to the row's one edit that is not in the batch: later values replace earlier ones, column by column. */
  edit(owner, table, id, values, at) {
    const earlier = this.edits(owner, table, id).find((e) => !e.sent);
    const edit = earlier ?? { sent: false, owner, table, id, deleted: false, values: {}, base: null, at };
    Object.assign(edit, { deleted: values === null, values: values === null ? {} : { ...edit.values, ...values }, at });
    if (!earlier) this.state.edits.push(edit);
  }

  visible(row, edits) {
    let values = row && !row.deleted ? row.values : null;
    for (const edit of edits) {
      if (edit.deleted) {
        values = null;
        continue;
      }
      // Deleted since it was edited: the edit still lies over the row that it has seen.
      if (!values && row?.deleted && edit.base !== null && edit.base !== row.ts) values = row.values;
      values = { ...values, ...edit.values };
    }
    return values;
  }

  /** Those of the batch first. */
  edits(owner, table, id) {
    const all = owner === undefined
      ? this.state.edits : this.state.edits.filter((e) => e.owner === owner && e.table === table && e.id === id);
    return [...all.filter((e) => e.sent), ...all.filter((e) => !e.sent)];
  }

  // Sending

  /** The batch without an outcome, or else a new one of the pending edits; stored before it is sent. */
  freeze() {
    if (this.state.batch) return this.state.batch;
    if (!this.state.edits.length) return null;
    return this.transaction((state) => {
      const changes = [];
      let size = 0;
      for (const edit of this.edits()) {
        const row = state.rows[keyOf(edit.owner, edit.table, edit.id)];
        if (edit.deleted && (!row || row.deleted)) {
          this.remove(edit); // the server does not have the row
          continue;
        }
        const base = edit.base ?? row?.ts ?? 0;
        // A deletion that was applied must not delete what another device has inserted again.
        const condition = edit.deleted && edit.wasSent ? { ifBase: true } : {};
        const change = { ...changeOf(edit), base, updatedAt: edit.at, ...condition };
        size += JSON.stringify(change).length;
        if (changes.length && (size > MOST_BYTES || changes.length === this.mostChanges)) break;
        changes.push(change);
        Object.assign(edit, { sent: true, base });
      }
      if (!changes.length) return null;
      const { knowledgeId, epoch, schemaVersion } = state;
      const number = state.lastBatch + 1;
      const body = JSON.stringify({ knowledgeId, epoch, schemaVersion, batch: number, changes });
      state.lastBatch = number;
      state.batch = { number, body };
      return state.batch;
    });
  }

  /** What a pull sends: the vector as it is now. */
  pullRequest() {
    const { knowledgeId, epoch, schemaVersion, vector, cutFrom } = this.state;
    return {
      knowledgeId, ...(epoch && { epoch, schemaVersion }), knowledge: vector, limit: this.limit, compact: true, ...(cutFrom && { cutFrom }),
    };
  }

  /** After 413: the edits are sent in smaller batches, or one that is too large alone is kept aside. */
  split() {
    this.transaction((state) => {
      const sent = state.edits.filter((e) => e.sent);
      this.mostChanges = Math.max(1, sent.length >> 1);
      if (sent.length === 1) this.keepAside(sent[0], "batch_too_large", "the server accepts no request of this size");
      this.thaw();
    });
  }

  // Applying

  /** Results, rows and vector, in one transaction. Returns whether nothing is left to pull. */
  apply(answer, batch) {
    return this.transaction((state) => {
      state.syncId = answer.syncId;
      state.owners = Object.fromEntries(answer.owners.map((o) => [this.owner(o.syncId), o.access]));
      let refusal = null;
      if (batch && state.batch?.number === batch.number) {
        refusal = answer.batch.refused;
        if (refusal) {
          this.thaw();
          // Unless the history is another one, the numbers were used: this device, or another, is a copy.
          if (refusal.code !== "history_changed") Object.assign(state, { knowledgeId: this.makeID(), lastBatch: 0 });
        } else {
          this.complete(answer.batch.results);
        }
      }
      for (const row of answer.changes) this.write(row);
      for (const syncId of answer.revoked) this.revoke(this.owner(syncId));
      for (const { syncId } of answer.resync) this.forget(this.owner(syncId));
      const named = new Set([...answer.knowledge, ...answer.resync].map((k) => k.syncId).concat(answer.revoked));
      state.vector = [...state.vector.filter((k) => !named.has(k.syncId)), ...answer.knowledge];
      state.epoch = answer.epoch;
      state.schemaVersion = answer.schemaVersion;
      state.cutFrom = answer.cutFrom ?? null;
      const isDrained = !(answer.hasMore || answer.resync.length || refusal);
      if (isDrained && state.mustDrain) this.rebase();
      return isDrained;
    });
  }

  complete(results) {
    const { state } = this;
    const sent = state.edits.filter((e) => e.sent);
    if (results.length !== sent.length) throw new TypeError("the answer has another number of results than the batch has changes");
    state.batch = null;
    sent.forEach((edit, index) => {
      const result = results[index];
      if (result.code === "batch_rows_too_large") return this.unsend(edit); // it was not looked at
      const key = keyOf(edit.owner, edit.table, edit.id), row = state.rows[key];
      this.remove(edit);
      if (result.status === "applied" || result.status === "deleted") {
        // Not over a version that was pulled at that timeStamp or later: a repeat has the results of the first time.
        if (result.timeStamp > (row?.ts ?? 0) && edit.owner in state.owners) {
          const deleted = edit.deleted || result.status === "deleted";
          const values = (deleted && row ? row.values : this.visible(row, [edit])) ?? {};
          const writer = state.knowledgeId;
          state.rows[key] = { ...pick(edit), ts: result.timeStamp, deleted, values, writer };
        }
        if (result.status === "deleted") {
          this.keepAside(edit, "deleted", "the row was deleted before the edit arrived");
          // Edits that were made since have not seen the deletion either.
          if (state.rows[key]?.deleted) for (const later of this.edits(edit.owner, edit.table, edit.id)) later.base ??= edit.base;
        }
      } else {
        this.keepAside(edit, result.code ?? "conflict", result.message, result.row);
        if (result.row) this.write(result.row);
      }
    });
  }

  /** Stores a row of the server beneath the edits, unless a later version is there. */
  write(row) {
    const owner = this.owner(row.syncId), key = keyOf(owner, row.table, row.id), known = this.state.rows[key];
    if (known && known.ts > row.timeStamp) return;
    const isOwn = row.writer.syncId === this.state.syncId && row.writer.knowledgeId === this.state.knowledgeId;
    const edits = this.edits(owner, row.table, row.id);
    // An own one is of the batch without an outcome; what else has this name is of a copy of the device.
    if (!(isOwn && edits.some((e) => e.sent)) && known?.ts !== row.timeStamp) { // no edit has seen this version
      for (const edit of edits) edit.base ??= known?.ts ?? 0;
    }
    this.state.rows[key] = {
      owner, table: row.table, id: row.id, ts: row.timeStamp, deleted: row.deleted, values: row.values,
      writer: row.writer.knowledgeId,
    };
  }

  keepAside(edit, code, message = null, row = null) {
    const { state } = this;
    state.aside.push({ number: state.nextAside++, ...pick(edit), deleted: edit.deleted, values: edit.values, code, message, row });
    this.remove(edit);
  }

  remove(edit) { this.state.edits = this.state.edits.filter((e) => e !== edit); }

  /** Makes an edit of the batch pending, beneath one that was made since. */
  unsend(edit) {
    const newer = this.edits(edit.owner, edit.table, edit.id).find((e) => !e.sent);
    if (newer) {
      const values = newer.deleted ? {} : { ...edit.values, ...newer.values };
      Object.assign(edit, { deleted: newer.deleted, values, at: newer.at });
      this.remove(newer);
    }
    edit.sent = false;
  }

  /** The batch has no outcome and never will: everything is pulled before its edits are sent again, under another number. */
  thaw() {
    for (const edit of this.state.edits.filter((e) => e.sent)) {
      this.unsend(edit);
      edit.wasSent = true;
    }
    this.state.batch = null;
    this.state.mustDrain = true;
  }

  revoke(owner) {
    for (const edit of this.edits()) if (edit.owner === owner && !edit.sent) this.keepAside(edit, "revoked");
    for (const [key, row] of this.rowsOf(owner)) delete this.state.rows[key];
  }

  /** The rows' timeStamps are of another history: they stay visible, and no edit has seen a version of the new one. */
  forget(owner) {
    this.thaw();
    for (const [key, row] of this.rowsOf(owner)) {
      if (row.deleted) delete this.state.rows[key];
      else row.ts = 0;
    }
    for (const edit of this.state.edits) if (edit.owner === owner) edit.base = 0;
  }

  /** Everything is pulled: what remains of the edits is what the server does not have. */
  rebase() {
    const { state } = this;
    for (const [key, row] of Object.entries(state.rows)) {
      if (row.ts !== 0) continue; // else it is not in the new history
      const edits = this.edits(row.owner, row.table, row.id), values = this.visible(row, edits);
      delete state.rows[key];
      if (values && this.mayWrite(row.owner)) {
        this.edit(row.owner, row.table, row.id, values, edits.at(-1)?.at ?? "1970-01-01T00:00:00Z");
      }
    }
    for (const edit of this.edits()) {
      const row = state.rows[keyOf(edit.owner, edit.table, edit.id)];
      if (edit.deleted || !row || row.deleted) continue; // freezing drops the deletion of what is not there
      const differs = ([name, value]) => !Object.hasOwn(row.values, name) || !same(row.values[name], value);
      edit.values = Object.fromEntries(Object.entries(edit.values).filter(differs));
      if (!Object.keys(edit.values).length) this.remove(edit);
    }
    state.mustDrain = false;
  }

  rowsOf(owner) { return Object.entries(this.state.rows).filter(([, row]) => row.owner === owner); }

  /** How rows name an owner: "" for the device's own account. */
  owner(syncId) { return syncId === this.state.syncId ? "" : syncId; }
}

const pick = ({ owner, table, id }) => ({ owner, table, id });

/** An edit as the contract's change. */
function changeOf(edit) {
  return {
    table: edit.table, id: edit.id, ...(edit.owner && { syncId: edit.owner }),
    ...(edit.deleted ? { deleted: true } : { values: edit.values }),
  };
}

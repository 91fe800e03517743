"""What a device of Weir keeps, in one SQLite file, and what its app does there without a network."""
import contextlib, datetime, json, sqlite3, types, uuid

LAYOUT = 1  # of the tables, in PRAGMA user_version: another number for other tables
TABLES = f"""
PRAGMA journal_mode = WAL;
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value BLOB);
CREATE TABLE IF NOT EXISTS row (  -- the server's rows as last received; owner is '' for the account itself
    owner TEXT, tbl TEXT, id TEXT, ts INTEGER, deleted INTEGER, vals BLOB, PRIMARY KEY (owner, tbl, id));
CREATE TABLE IF NOT EXISTS edit (  -- in the order in which they were made
    seq INTEGER PRIMARY KEY, owner TEXT, tbl TEXT, id TEXT,
    vals BLOB,        -- NULL for a deletion
    at TEXT,
    base INTEGER,     -- NULL while the edit has seen the newest version of the row
    sent INTEGER,     -- it is in the batch
    unsure INTEGER);  -- a deletion that was in a batch which has no outcome and never will
CREATE INDEX IF NOT EXISTS edit_of_row ON edit (owner, tbl, id);
CREATE TABLE IF NOT EXISTS aside (number INTEGER PRIMARY KEY AUTOINCREMENT, edit BLOB);
PRAGMA user_version = {LAYOUT};
COMMIT;
"""
KEY = "(owner, tbl, id) = (?, ?, ?)"


class Record(types.SimpleNamespace):
    """A row of one of the tables. Blobs are JSON."""

    def __init__(self, cursor, columns):
        names = [description[0] for description in cursor.description]
        super().__init__(**{n: json.loads(c) if isinstance(c, bytes) else c for n, c in zip(names, columns)})

    @property
    def key(self):
        return self.owner, self.tbl, self.id


ABSENT = types.SimpleNamespace(ts=0, deleted=True, vals={})  # a row of which the server has sent nothing


class OtherLayout(Exception):
    """The file has the tables of another version of this client, or of another program; it is unchanged."""


class File:
    """One process at a time may sync it; any may do the rest. Raises OtherLayout if it is not one of this client."""

    def __init__(self, path, new_id=lambda: str(uuid.uuid4())):
        self.new_id = new_id
        self.now = lambda: datetime.datetime.now(datetime.timezone.utc).isoformat()
        self.db = sqlite3.connect(path, timeout=30, isolation_level=None)
        self.db.row_factory = Record
        if not self._all("SELECT * FROM sqlite_master"):
            self.db.executescript(TABLES)
        [found] = self._all("PRAGMA user_version")
        if found.user_version != LAYOUT:
            raise OtherLayout(f"{path} has tables of layout {found.user_version}, and this client those of layout {LAYOUT}")
        with self._transaction():
            if not self._get("knowledgeId"):
                self._set(knowledgeId=self.new_id(), lastBatch=0, knowledge=[])

    # What the app calls

    def put(self, table, id, values, owner=""):
        """Creates a row, or edits the columns in values."""
        self._edit((owner, table, id), {**values}, self.now())

    def delete(self, table, id, owner=""):
        self._edit((owner, table, id), None, self.now())

    def rows(self, table, owner=""):
        """The server's rows by id, and the edits without an outcome over them.

        A column that is absent has the default that GET /v1/schema names, or else None, which is NULL."""
        with self._transaction("BEGIN"):  # one state of the file, also while another process applies an answer
            found = self._all("SELECT owner, tbl, id FROM row WHERE owner = ? AND tbl = ? UNION"
                              " SELECT owner, tbl, id FROM edit WHERE owner = ? AND tbl = ?", *2 * (owner, table))
            seen = {r.id: visible(self._row(r.key), self._edits(r.key)) for r in found}
        return {id: vals for id, vals in seen.items() if vals is not None}

    def pending(self):
        """The edits without an outcome; sent ones are in the batch."""
        return [change(e) | {"sent": bool(e.sent)} for e in self._edits()]

    def aside(self):
        """The edits that the server did not accept, with the reason and the server's row: for the user to decide."""
        return [a.edit | {"number": a.number} for a in self._all("SELECT * FROM aside ORDER BY number")]

    def resend(self, number):
        """Makes an edit that is aside again, on the row as it is now."""
        with self._transaction():
            for a in self._all("SELECT * FROM aside WHERE number = ?", number):
                self.discard(number)
                key = a.edit.get("syncId", ""), a.edit["table"], a.edit["id"]
                self._edit(key, a.edit.get("values"), self.now())

    def discard(self, number):
        self.db.execute("DELETE FROM aside WHERE number = ?", [number])

    def knowledge(self):
        """The vector, as it is sent."""
        return self._get("knowledge")

    # Edits

    def _edit(self, key, vals, at):
        self.db.execute("INSERT INTO edit (owner, tbl, id, vals, at, sent, unsure) VALUES (?, ?, ?, ?, ?, 0, 0)",
                        [*key, to_json(vals), at])

    def _edits(self, key=()):
        """Those of a row as one, later values over earlier ones; those that are sent, and those made since, as two."""
        merged = {}
        for e in self._all(f"SELECT * FROM edit {'WHERE ' + KEY if key else ''} ORDER BY sent DESC, seq", *key):
            first = merged.setdefault((e.sent, e.key), e)
            if e is not first:
                first.vals = None if e.vals is None else (first.vals or {}) | e.vals
                first.at, first.unsure = e.at, first.unsure or e.unsure
        return list(merged.values())

    def _drop(self, e):
        self.db.execute(f"DELETE FROM edit WHERE {KEY} AND sent = ?", [*e.key, e.sent])

    def _unsend(self, e):
        """Makes an edit of the batch pending, beneath those made since: these become one first, since a deletion among them is not of it."""
        for newer in self._edits(e.key):
            if not newer.sent:
                self.db.execute(f"DELETE FROM edit WHERE {KEY} AND NOT sent AND seq > ?", [*e.key, newer.seq])
                self.db.execute("UPDATE edit SET vals = ?, at = ?, unsure = ? WHERE seq = ?",
                                [to_json(newer.vals), newer.at, newer.unsure, newer.seq])
        self.db.execute(f"UPDATE edit SET sent = 0 WHERE {KEY}", e.key)

    def _keep_aside(self, e, code, message=None, row=None):
        edit = change(e) | {"code": code, "message": message, "row": row}
        self.db.execute("INSERT INTO aside (edit) VALUES (?)", [to_json(edit)])
        self._drop(e)

    # Rows

    def _row(self, key):
        return next(iter(self._all(f"SELECT * FROM row WHERE {KEY}", *key)), ABSENT)

    def _store(self, key, ts, is_deleted, vals):
        self.db.execute("INSERT OR REPLACE INTO row VALUES (?, ?, ?, ?, ?, ?)", [*key, ts, is_deleted, to_json(vals)])

    # All tables

    def _all(self, sql, *values):
        return self.db.execute(sql, values).fetchall()

    def _get(self, key):
        return next((m.value for m in self._all("SELECT * FROM meta WHERE key = ?", key)), None)

    def _set(self, **values):
        for key, value in values.items():
            self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", [key, to_json(value)])

    @contextlib.contextmanager
    def _transaction(self, begin="BEGIN IMMEDIATE"):
        self.db.execute(begin)
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")


def visible(row, edits):
    """A row's values beneath its edits; None if there is no such row."""
    vals = None if row.deleted else row.vals
    for e in edits:
        if vals is None and row.deleted and e.base not in (None, row.ts):
            vals = row.vals  # deleted since it was edited
        vals = None if e.vals is None else (vals or {}) | e.vals
    return vals


def change(e):
    """An edit as the contract's change."""
    named = {"table": e.tbl, "id": e.id} | ({"syncId": e.owner} if e.owner else {})
    return named | ({"deleted": True} if e.vals is None else {"values": e.vals})


def to_json(value):
    """UTF-8, None for None; raises for what JSON does not have: NaN, infinity, half of a surrogate pair."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return None if value is None else text.encode()

#!/usr/bin/env python3
"""A client of Weir in one file: docs/clients.md explains each rule that it follows. Python 3.9 and SQLite 3.24, nothing else."""
import contextlib, datetime, http.client, json, sqlite3, sys, urllib.error, urllib.parse, urllib.request, uuid

TABLES = """
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value);
CREATE TABLE IF NOT EXISTS row (  -- the server's rows as last received; owner is '' for the account itself
    owner TEXT, tbl TEXT, id TEXT, ts INTEGER, deleted INTEGER, vals TEXT, PRIMARY KEY (owner, tbl, id));
CREATE TABLE IF NOT EXISTS edit (  -- sent: whether it is in the batch; base: NULL while it has seen the newest version of the row;
    -- deleted: 2 if it was in a batch that has no outcome and never will
    seq INTEGER PRIMARY KEY, sent INTEGER, owner TEXT, tbl TEXT, id TEXT, deleted INTEGER, vals TEXT, base INTEGER, at TEXT,
    UNIQUE (owner, tbl, id, sent));
CREATE TABLE IF NOT EXISTS batch (number INTEGER PRIMARY KEY, body BLOB);  -- at most one: it has no outcome yet
CREATE TABLE IF NOT EXISTS vector (owner TEXT, device TEXT, ts INTEGER, PRIMARY KEY (owner, device));
CREATE TABLE IF NOT EXISTS aside (
    number INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT, tbl TEXT, id TEXT, deleted INTEGER, vals TEXT,
    code TEXT, message TEXT, shown TEXT);
"""
ANSWER = {"syncId", "epoch", "schemaVersion", "owners", "changes", "knowledge", "hasMore", "revoked", "resync"}
# What reading an answer raises that has other content than the contract says.
MALFORMED = (AttributeError, LookupError, TypeError, ValueError, OverflowError,
             sqlite3.InterfaceError, sqlite3.ProgrammingError, sqlite3.IntegrityError)
MOST_BYTES = 1 << 20  # of a batch's changes; the server's own limits are in GET /v1/schema


class SyncError(Exception):
    """Why sync() ended early. Nothing is lost: call it again, not before retry_after seconds."""

    def __init__(self, message, status=None, code=None, retry_after=None):
        super().__init__(message)
        self.status, self.code, self.retry_after = status, code, retry_after


class Client:
    """A device's file. One process at a time calls sync(); any may call the rest."""

    def __init__(self, path, server, headers=dict, transport=None, new_id=lambda: str(uuid.uuid4())):
        """headers: called by each sync(), and again after 401; returns those that name the caller, such as Authorization."""
        self.server, self.headers, self.transport, self.new_id = server.rstrip("/"), headers, transport or http_transport, new_id
        self.limit, self.most_changes, self.caller, self.known_caller = 1000, 1000, None, None
        self.now = lambda: datetime.datetime.now(datetime.timezone.utc).isoformat()
        self.db = sqlite3.connect(path, timeout=30, isolation_level=None)
        self.db.row_factory = sqlite3.Row
        self.db.executescript(TABLES)
        with self._transaction():
            if not self._get("knowledgeId"):
                self._set("knowledgeId", self.new_id())

    # What the app calls

    def put(self, table, id, values, owner=""):
        """Creates a row, or edits the columns in values."""
        with self._transaction():
            self._edit(owner, table, id, values, self.now())

    def delete(self, table, id, owner=""):
        with self._transaction():
            self._edit(owner, table, id, None, self.now())

    def rows(self, table, owner=""):
        """The rows by id: the server's, and over them the edits that have no outcome yet. A column that is absent is NULL."""
        with self._transaction("BEGIN"):  # one state of the file, also while another process applies an answer
            ids = self.db.execute("SELECT id FROM row WHERE owner = ?1 AND tbl = ?2 UNION"
                                  " SELECT id FROM edit WHERE owner = ?1 AND tbl = ?2", [owner, table])
            seen = {id: self._visible(self._row(owner, table, id), self._edits(owner, table, id))
                    for (id,) in ids.fetchall()}
        return {id: {c: v for c, v in values.items() if v is not None} for id, values in seen.items() if values is not None}

    def pending(self):
        """The edits without an outcome; sent ones are in the batch."""
        return [_change(e) | {"sent": bool(e["sent"])} for e in self._edits()]

    def aside(self):
        """The edits that the server did not accept, with the reason and the server's row: for the user to decide."""
        return [_change(a) | {"number": a["number"], "code": a["code"], "message": a["message"], "row": json.loads(a["shown"])}
                for a in self.db.execute("SELECT * FROM aside ORDER BY number").fetchall()]

    def resend(self, number):
        """Makes an edit that is aside again, on the row as it is now."""
        with self._transaction():
            for a in self.db.execute("SELECT * FROM aside WHERE number = ?", [number]).fetchall():
                self._edit(a["owner"], a["tbl"], a["id"], None if a["deleted"] else json.loads(a["vals"]), self.now())
                self.discard(number)

    def discard(self, number):
        self.db.execute("DELETE FROM aside WHERE number = ?", [number])

    def sync(self):
        """Sends all edits, and pulls until nothing is left. Raises SyncError."""
        self.caller, is_drained, is_renewed = self.headers(), False, False
        while True:
            # No edits are sent before an answer has shown that the caller is the file's account, nor while outcomes are unknown.
            batch = self._freeze() if self.caller == self.known_caller and not self._get("mustDrain") else None
            if batch is None and is_drained:
                return
            try:
                is_drained = self._apply(self._exchange(batch), batch)
            except SyncError as error:
                rejected, is_drained = self.caller, False
                if error.status == 401 and not is_renewed:
                    self.caller, is_renewed = self.headers(), True
                if self.caller != rejected:
                    continue
                if batch is None or error.status != 413:
                    raise
                self._split(batch)
                continue
            except MALFORMED as error:
                raise SyncError(f"the answer is not of the contract: {error!r}", 200) from error
            self.known_caller = self.caller

    # Edits

    def _edit(self, owner, table, id, values, at):
        """Adds to the row's one edit that is not in the batch: later values replace earlier ones, column by column."""
        earlier = next((json.loads(e["vals"]) for e in self._edits(owner, table, id) if not e["sent"]), {})
        self.db.execute(
            "INSERT INTO edit (sent, owner, tbl, id, deleted, vals, at) VALUES (0, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (owner, tbl, id, sent) DO UPDATE SET deleted = excluded.deleted, vals = excluded.vals, at = excluded.at",
            [owner, table, id, values is None, _json({} if values is None else earlier | values), at])

    def _visible(self, row, edits):
        """A row's values beneath its edits; None if there is no such row."""
        values = json.loads(row["vals"]) if row and not row["deleted"] else None
        for e in edits:
            if e["deleted"]:
                values = None
                continue
            if values is None and row and row["deleted"] and e["base"] not in (None, row["ts"]):
                values = json.loads(row["vals"])  # deleted since it was edited
            values = (values or {}) | json.loads(e["vals"])
        return values

    # Sending

    def _freeze(self):
        """The batch without an outcome, or else a new one: its bytes are in the file before they are sent."""
        with self._transaction():
            frozen = self.db.execute("SELECT * FROM batch").fetchone()
            if frozen:
                return frozen
            changes, size = [], 0
            for e in self._edits():
                row = self._row(e["owner"], e["tbl"], e["id"])
                if e["deleted"] and (row is None or row["deleted"]):
                    self.db.execute("DELETE FROM edit WHERE seq = ?", [e["seq"]])  # the server does not have it
                    continue
                base = e["base"] if e["base"] is not None else row["ts"] if row else 0
                # One that was applied must not delete what another device has inserted again.
                condition = {"ifBase": True} if e["deleted"] == 2 else {}
                change = _change(e) | {"base": base, "updatedAt": e["at"]} | condition
                size += len(_json(change))
                if changes and (size > MOST_BYTES or len(changes) == self.most_changes):
                    break
                changes.append(change)
                self.db.execute("UPDATE edit SET sent = 1, base = ? WHERE seq = ?", [base, e["seq"]])
            if not changes:
                return None
            number = (self._get("lastBatch") or 0) + 1
            body = {key: self._get(key) for key in ("knowledgeId", "epoch", "schemaVersion")} | {"batch": number, "changes": changes}
            self._set("lastBatch", number)
            self.db.execute("INSERT INTO batch VALUES (?, ?)", [number, _json(body)])
            return self.db.execute("SELECT * FROM batch").fetchone()

    def _exchange(self, batch):
        """Sends the batch as it was frozen, and the vector as it is now."""
        pull = {"knowledge": self.knowledge(), "limit": self.limit, "compact": True}
        if self._get("cutFrom"):
            pull["cutFrom"] = json.loads(self._get("cutFrom"))
        head = batch["body"] if batch else _json({k: self._get(k) for k in ("knowledgeId", "epoch") if self._get(k)})
        answer = self._request("POST", "/v1/sync" if batch else "/v1/pull", head[:-1] + b"," + _json(pull)[1:])
        if not ANSWER <= answer.keys() or batch and answer.get("batch", {}).get("batch") != batch["number"]:
            raise SyncError("the answer is not of the contract", 200)
        if self._get("syncId") not in (None, answer["syncId"]):
            raise SyncError(f"the file is of {self._get('syncId')}, the token of {answer['syncId']}")
        outcome = answer.get("batch") or {}
        while "rowsFrom" in outcome:  # the server's rows of conflicts that did not fit into the answer
            query = urllib.parse.urlencode({"knowledgeId": self._get("knowledgeId"), "rowsFrom": outcome.pop("rowsFrom")})
            page = self._request("GET", f"/v1/batches/{batch['number']}?{query}")["batch"]
            for shown in page["rows"]:
                outcome["results"][shown["result"]]["row"] = shown["row"]
            outcome.update({k: v for k, v in page.items() if k == "rowsFrom"})
        return answer

    def _request(self, method, path, body=None):
        try:
            status, fields, text = self.transport(
                method, self.server + path, body, {"Content-Type": "application/json", **self.caller})
        except (OSError, http.client.HTTPException) as error:
            raise SyncError(f"no complete answer: {error}") from error
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None  # a page of a proxy, or of a network that asks to log in
        answer = answer if isinstance(answer, dict) else {}
        if status != 200:
            after = fields.get("Retry-After") or ""
            raise SyncError(answer.get("detail") or answer.get("title") or f"status {status}", status, answer.get("code"),
                            int(after) if after.isdecimal() else None)
        return answer

    def _split(self, batch):
        """After 413: the edits are sent in smaller batches, or one that is too large alone is kept aside."""
        with self._transaction():
            edits = [e for e in self._edits() if e["sent"]]
            self.most_changes = max(1, len(edits) // 2)
            if len(edits) == 1:
                self._keep_aside(edits[0], "batch_too_large", "the server accepts no request of this size")
            self._thaw()

    # Applying

    def _apply(self, answer, batch):
        """Results, rows, vector, in one transaction. Returns whether nothing is left to pull."""
        with self._transaction():
            self._set("syncId", answer["syncId"])
            access = {self._owner(o["syncId"]): o["access"] for o in answer["owners"]}
            refusal = None
            if batch and self.db.execute("SELECT 1 FROM batch WHERE number = ?", [batch["number"]]).fetchone():
                refusal = answer["batch"].get("refused")
                if refusal:
                    self._thaw()
                    if refusal["code"] != "history_changed":  # the numbers were used: the file, or another, is a copy
                        self._set("knowledgeId", self.new_id())
                        self._set("lastBatch", 0)
                else:
                    self._complete(answer["batch"]["results"], access)
            for row in answer["changes"]:
                self._write(row)
            for owner in answer["revoked"]:
                self._revoke(self._owner(owner))
            for owner in answer["resync"]:
                self._forget(self._owner(owner["syncId"]))
            for owner in {k["syncId"] for k in answer["knowledge"]} | set(answer["revoked"]) | {o["syncId"] for o in answer["resync"]}:
                self.db.execute("DELETE FROM vector WHERE owner = ?", [owner])
            self.db.executemany("INSERT INTO vector VALUES (:syncId, :knowledgeId, :lastTimeStamp)", answer["knowledge"])
            for key in "epoch", "schemaVersion":
                self._set(key, answer[key])
            self._set("cutFrom", _json(answer["cutFrom"]) if answer.get("cutFrom") else None)
            is_drained = not (answer["hasMore"] or answer["resync"] or refusal)
            if is_drained and self._get("mustDrain"):
                self._rebase(access)
            return is_drained

    def _complete(self, results, access):
        edits = [e for e in self._edits() if e["sent"]]
        if len(results) != len(edits):
            raise SyncError("the answer has another number of results than the batch has changes", 200)
        self.db.execute("DELETE FROM batch")
        for e, result in zip(edits, results):
            if result.get("code") == "batch_rows_too_large":  # it was not looked at
                self._unsend(e)
                continue
            row = self._row(e["owner"], e["tbl"], e["id"])
            self.db.execute("DELETE FROM edit WHERE seq = ?", [e["seq"]])
            if result["status"] in ("applied", "deleted"):
                # Not over a version that was pulled at that timeStamp or later: a repeat has the results of the first time.
                if result["timeStamp"] > (row["ts"] if row else 0) and e["owner"] in access:
                    is_deleted = e["deleted"] or result["status"] == "deleted"
                    values = json.loads(row["vals"]) if is_deleted and row else self._visible(row, [e]) or {}
                    self._store(e["owner"], e["tbl"], e["id"], result["timeStamp"], is_deleted, values)
                if result["status"] == "deleted":
                    self._keep_aside(e, "deleted", "the row was deleted before the edit arrived")
                    # Edits that were made since have not seen the deletion either.
                    self.db.execute("UPDATE edit SET base = ? WHERE base IS NULL AND (owner, tbl, id) = (SELECT owner, tbl, id"
                                    " FROM row WHERE deleted AND owner = ? AND tbl = ? AND id = ?)",
                                    [e["base"], e["owner"], e["tbl"], e["id"]])
            else:
                self._keep_aside(e, result.get("code", "conflict"), result.get("message"), result.get("row"))
                if result.get("row"):
                    self._write(result["row"])

    def _write(self, row):
        """Stores a row of the server beneath the edits, unless a later version is there."""
        key = self._owner(row["syncId"]), row["table"], row["id"]
        known = self._row(*key)
        if known and known["ts"] > row["timeStamp"]:
            return
        # Of the batch without an outcome; what else has this name is of a copy of the file.
        is_own = (row["writer"] == {"syncId": self._get("syncId"), "knowledgeId": self._get("knowledgeId")}
                  and any(e["sent"] for e in self._edits(*key)))
        if not is_own and (known is None or known["ts"] != row["timeStamp"]):  # no edit has seen this version
            self.db.execute("UPDATE edit SET base = ? WHERE base IS NULL AND owner = ? AND tbl = ? AND id = ?",
                            [known["ts"] if known else 0, *key])
        self._store(*key, row["timeStamp"], row["deleted"], row["values"])

    def _store(self, owner, table, id, ts, is_deleted, values):
        self.db.execute("INSERT OR REPLACE INTO row VALUES (?, ?, ?, ?, ?, ?)", [owner, table, id, ts, is_deleted, _json(values)])

    def _keep_aside(self, e, code, message=None, row=None):
        self.db.execute("INSERT INTO aside (owner, tbl, id, deleted, vals, code, message, shown) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                        [e["owner"], e["tbl"], e["id"], e["deleted"], e["vals"], code, message, _json(row)])
        self.db.execute("DELETE FROM edit WHERE seq = ?", [e["seq"]])

    def _unsend(self, e):
        """Makes an edit of the batch pending, beneath one that was made since."""
        newer = next((n for n in self._edits(e["owner"], e["tbl"], e["id"]) if not n["sent"]), None)
        if newer:
            values = {} if newer["deleted"] else json.loads(e["vals"]) | json.loads(newer["vals"])
            self.db.execute("DELETE FROM edit WHERE seq = ?", [newer["seq"]])
            self.db.execute("UPDATE edit SET deleted = ?, vals = ?, at = ? WHERE seq = ?",
                            [newer["deleted"], _json(values), newer["at"], e["seq"]])
        self.db.execute("UPDATE edit SET sent = 0 WHERE seq = ?", [e["seq"]])

    def _thaw(self):
        """The batch has no outcome and never will: everything is pulled before its edits are sent again, under another number."""
        for e in self._edits():
            if e["sent"]:
                self._unsend(e)
                self.db.execute("UPDATE edit SET deleted = 2 WHERE seq = ? AND deleted", [e["seq"]])
        self.db.execute("DELETE FROM batch")
        self._set("mustDrain", 1)

    def _revoke(self, owner):
        for e in self._edits():
            if e["owner"] == owner and not e["sent"]:
                self._keep_aside(e, "revoked")
        self.db.execute("DELETE FROM row WHERE owner = ?", [owner])

    def _forget(self, owner):
        """The rows' timeStamps are of another history: they stay visible, and no edit has seen a version of the new one."""
        self._thaw()
        self.db.execute("DELETE FROM row WHERE owner = ? AND deleted", [owner])
        self.db.execute("UPDATE row SET ts = 0 WHERE owner = ?", [owner])
        self.db.execute("UPDATE edit SET base = 0 WHERE owner = ?", [owner])

    def _rebase(self, access):
        """Everything is pulled: what remains of the edits is what the server does not have."""
        for row in self.db.execute("SELECT * FROM row WHERE ts = 0").fetchall():  # not in the new history
            key = row["owner"], row["tbl"], row["id"]
            edits = self._edits(*key)
            values = self._visible(row, edits)
            self.db.execute("DELETE FROM row WHERE owner = ? AND tbl = ? AND id = ?", key)
            if values is not None and access.get(row["owner"]) == "write":
                self._edit(*key, values, edits[-1]["at"] if edits else "1970-01-01T00:00:00Z")
        for e in self._edits():
            row = self._row(e["owner"], e["tbl"], e["id"])
            if e["deleted"] or row is None or row["deleted"]:
                continue  # freezing drops the deletion of what is not there
            known = json.loads(row["vals"])
            values = {c: v for c, v in json.loads(e["vals"]).items() if c not in known or known[c] != v}
            if values:
                self.db.execute("UPDATE edit SET vals = ? WHERE seq = ?", [_json(values), e["seq"]])
            else:
                self.db.execute("DELETE FROM edit WHERE seq = ?", [e["seq"]])
        self._set("mustDrain", None)

    # The file

    def knowledge(self):
        """The vector, as it is sent."""
        return [{"syncId": owner, "knowledgeId": device, "lastTimeStamp": ts}
                for owner, device, ts in self.db.execute("SELECT * FROM vector ORDER BY owner, device").fetchall()]

    def _row(self, *key):
        return self.db.execute("SELECT * FROM row WHERE owner = ? AND tbl = ? AND id = ?", key).fetchone()

    def _edits(self, *key):
        where = "WHERE owner = ? AND tbl = ? AND id = ?" if key else ""
        return self.db.execute(f"SELECT * FROM edit {where} ORDER BY sent DESC, seq", key).fetchall()

    def _owner(self, sync_id):
        return "" if sync_id == self._get("syncId") else sync_id

    def _get(self, key):
        return next((value for (value,) in self.db.execute("SELECT value FROM meta WHERE key = ?", [key])), None)

    def _set(self, key, value):
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", [key, value])

    @contextlib.contextmanager
    def _transaction(self, begin="BEGIN IMMEDIATE"):
        self.db.execute(begin)
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")


def _json(value):
    """UTF-8; raises for what JSON does not have: NaN, infinity, half of a surrogate pair."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _change(e):
    """An edit as the contract's change."""
    change = {"table": e["tbl"], "id": e["id"]} | ({"syncId": e["owner"]} if e["owner"] else {})
    return change | ({"deleted": True} if e["deleted"] else {"values": json.loads(e["vals"])})


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirection is that of a network that asks to log in: it is an error, and no answer."""

    def redirect_request(self, *_):
        return None


def http_transport(method, url, body, headers, opener=urllib.request.build_opener(_NoRedirects)):
    try:
        with opener.open(urllib.request.Request(url, body, headers, method=method), timeout=70) as response:
            return response.status, response.headers, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def main(path, server, caller, command, *arguments):
    """weir_client.py FILE SERVER SYNCID sync | put TABLE ID VALUES | delete TABLE ID | rows TABLE | pending | aside | ..."""
    client = Client(path, server, lambda: {"X-Sync-Id": urllib.parse.quote(caller, safe="")})
    if command not in ("sync", "put", "delete", "rows", "pending", "aside", "resend", "discard"):
        sys.exit(main.__doc__)
    arguments = [json.loads(a) if i == 2 else a for i, a in enumerate(arguments)]
    try:
        result = getattr(client, command)(*arguments)
    except SyncError as error:
        sys.exit(f"{error} (status {error.status}, code {error.code}, retry after {error.retry_after})")
    if result is not None:
        print(json.dumps(result, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) > 4 else sys.exit(main.__doc__)

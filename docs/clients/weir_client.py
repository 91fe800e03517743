#!/usr/bin/env python3
"""A client of Weir: the rules of docs/clients.md, which explains each. Python 3.9 and SQLite 3.15, nothing else.

weir_file.py has what it keeps and what the app calls without a network, weir_http.py has the requests.
"""
import json, sqlite3, sys, urllib.parse
from weir_file import ABSENT, KEY, File, OtherLayout, change, to_json, visible
from weir_http import SyncError, http_transport, request

ANSWER = {"syncId", "epoch", "schemaVersion", "owners", "changes", "knowledge", "hasMore", "revoked", "resync"}
HEAD = "knowledgeId", "epoch", "schemaVersion"  # of a request, and of a batch as of its freezing
VECTOR = "syncId", "knowledgeId", "lastTimeStamp"  # of an entry of knowledge
# What reading an answer raises that has other content than the contract says.
MALFORMED = (AttributeError, LookupError, TypeError, ValueError, OverflowError, sqlite3.InterfaceError,
             sqlite3.ProgrammingError, sqlite3.IntegrityError)
MOST_BYTES = 1 << 20  # of a batch's changes; the server's own limits are in GET /v1/schema


class Client(File):
    def __init__(self, path, server, headers=dict, transport=None, **options):
        """headers: called by each sync(), and after 401; returns those that name the caller, such as Authorization."""
        super().__init__(path, **options)
        self.server, self.headers, self.transport = server.rstrip("/"), headers, transport or http_transport
        self.limit, self.most_changes, self.caller, self.known_caller = 1000, 1000, None, None

    def sync(self):
        """Sends all edits, and pulls until nothing is left. Raises SyncError."""
        self.caller, is_drained, is_renewed = self.headers(), False, False
        while True:
            # Nothing is sent before an answer has shown whose token it is, nor while outcomes are unknown.
            may_send = self.caller == self.known_caller and not self._get("mustDrain")
            batch = self._freeze() if may_send else None
            if batch is None and is_drained:
                return
            try:
                is_drained = self._apply(self._exchange(batch), batch)
                self.known_caller = self.caller
            except MALFORMED as error:
                raise SyncError(f"the answer is not of the contract: {error!r}", 200) from error
            except SyncError as error:
                rejected, is_drained = self.caller, False
                if error.status == 401 and not is_renewed:
                    self.caller, is_renewed = self.headers(), True
                if error.status == 413 and batch:
                    self._split()
                elif self.caller == rejected:
                    raise

    # Sending

    def _freeze(self):
        """The batch without an outcome, or else a new one: it is in the file before it is sent."""
        with self._transaction():
            if self._get("batch"):
                return self._get("batch")
            changes, size = [], 0
            for e in self._edits():
                row = self._row(e.key)
                if e.vals is None and row.deleted:  # the server does not have it
                    self._drop(e)
                    continue
                base = row.ts if e.base is None else e.base
                # A deletion that was applied must not delete what another device has inserted again.
                condition = {"ifBase": True} if e.vals is None and e.unsure else {}
                changes.append(change(e) | {"base": base, "updatedAt": e.at} | condition)
                size += len(to_json(changes[-1]))
                if len(changes) > 1 and (size > MOST_BYTES or len(changes) > self.most_changes):
                    changes.pop()
                    break
                self.db.execute(f"UPDATE edit SET sent = 1, base = ? WHERE {KEY}", [base, *e.key])
            if not changes:
                return None
            number = self._get("lastBatch") + 1
            head = {name: self._get(name) for name in HEAD}
            self._set(lastBatch=number, batch=head | {"batch": number, "changes": changes})
            return self._get("batch")

    def _exchange(self, batch):
        """Sends the batch as it was frozen, and the vector as it is now."""
        pull = {name: self._get(name) for name in HEAD + ("cutFrom",) if self._get(name)}
        pull |= {"knowledge": self.knowledge(), "limit": self.limit, "compact": True}
        answer = self._request("POST", "/v1/sync" if batch else "/v1/pull", pull | (batch or {}))
        outcome = answer.get("batch") or {}
        if not ANSWER <= answer.keys() or batch and outcome.get("batch") != batch["batch"]:
            raise ValueError("members are missing")
        if self._get("syncId") not in (None, answer["syncId"]):
            raise SyncError(f"the file is of {self._get('syncId')}, the token of {answer['syncId']}")
        rows_from = outcome.get("rowsFrom")
        while rows_from is not None:  # the server's rows of conflicts that did not fit into the answer
            query = urllib.parse.urlencode({"knowledgeId": batch["knowledgeId"], "rowsFrom": rows_from})
            page = self._request("GET", f"/v1/batches/{batch['batch']}?{query}")["batch"]
            for shown in page["rows"]:
                outcome["results"][shown["result"]]["row"] = shown["row"]
            rows_from = page.get("rowsFrom")
        return answer

    def _request(self, method, path, body=None):
        return request(self.transport, method, self.server + path, to_json(body), self.caller)

    def _split(self):
        """After 413: the edits are sent in smaller batches, or one that is too large alone is kept aside."""
        with self._transaction():
            sent = [e for e in self._edits() if e.sent]
            self.most_changes = max(1, len(sent) // 2)
            if len(sent) == 1:
                self._keep_aside(sent[0], "batch_too_large", "the server accepts no request of this size")
            self._thaw()

    # Applying

    def _apply(self, answer, batch):
        """Results, rows and vector, in one transaction. Returns whether nothing is left to pull."""
        with self._transaction():
            self._set(syncId=answer["syncId"])
            access = {self._owner(o["syncId"]): o["access"] for o in answer["owners"]}
            revoked, lost, refusal = answer["revoked"], [o["syncId"] for o in answer["resync"]], None
            if batch and batch == self._get("batch"):
                refusal = answer["batch"].get("refused")
                if refusal is None:
                    self._complete(answer["batch"]["results"], access)
                else:
                    self._thaw()
                    if refusal["code"] != "history_changed":  # the numbers were used: the file, or another, is a copy
                        self._set(knowledgeId=self.new_id(), lastBatch=0)
            for row in answer["changes"]:
                self._write(row)
            for owner in revoked:
                self._revoke(self._owner(owner))
            for owner in lost:
                self._forget(self._owner(owner))
            named = {entry["syncId"] for entry in answer["knowledge"]}.union(revoked, lost)
            vector = [entry for entry in self.knowledge() if entry["syncId"] not in named]
            vector += [{name: entry[name] for name in VECTOR} for entry in answer["knowledge"]]
            self._set(knowledge=vector, epoch=answer["epoch"], schemaVersion=answer["schemaVersion"],
                      cutFrom=answer.get("cutFrom"))
            is_drained = not (answer["hasMore"] or lost or refusal)
            if is_drained and self._get("mustDrain"):
                self._rebase(access)
            return is_drained

    def _complete(self, results, access):
        sent = [e for e in self._edits() if e.sent]
        if len(results) != len(sent):
            raise ValueError("another number of results than the batch has changes")
        self._set(batch=None)
        for e, result in zip(sent, results):
            status, code, row = result["status"], result.get("code", "conflict"), self._row(e.key)
            if code == "batch_rows_too_large":  # it was not looked at
                self._unsend(e)
                continue
            self._drop(e)
            if status not in ("applied", "deleted"):
                self._keep_aside(e, code, result.get("message"), result.get("row"))
                if result.get("row"):
                    self._write(result["row"])
                continue
            # Not over a version that was pulled at that timeStamp or later: a repeat has the results of the first time.
            if result["timeStamp"] > row.ts and e.owner in access:
                is_deleted = e.vals is None or status == "deleted"
                vals = row.vals if is_deleted and row is not ABSENT else visible(row, [e]) or {}
                self._store(e.key, result["timeStamp"], is_deleted, vals)
            if status == "deleted":
                self._keep_aside(e, "deleted", "the row was deleted before the edit arrived")
                if self._row(e.key).deleted:  # edits that were made since have not seen the deletion either
                    self._rest_on(e.base, e.key)

    def _write(self, row):
        """Stores a row of the server beneath the edits, unless a later version is there."""
        key = self._owner(row["syncId"]), row["table"], row["id"]
        known, ts = self._row(key), row["timeStamp"]
        if known.ts > ts:
            return
        # This device's: of the batch without an outcome; what else has this name is of a copy of the file.
        is_own = (row["writer"] == {"syncId": self._get("syncId"), "knowledgeId": self._get("knowledgeId")}
                  and any(e.sent for e in self._edits(key)))
        if not is_own and known.ts != ts:  # no edit has seen this version
            self._rest_on(known.ts, key)
        self._store(key, ts, row["deleted"], row["values"])

    def _rest_on(self, base, key):
        """The row's edits have seen no later version than base."""
        self.db.execute(f"UPDATE edit SET base = ? WHERE base IS NULL AND {KEY}", [base, *key])

    def _owner(self, sync_id):
        return "" if sync_id == self._get("syncId") else sync_id

    def _revoke(self, owner):
        for e in self._edits():
            if e.owner == owner and not e.sent:
                self._keep_aside(e, "revoked")
        self.db.execute("DELETE FROM row WHERE owner = ?", [owner])

    # When the outcome is unknown

    def _thaw(self):
        """The batch has no outcome and never will: all is pulled before its edits are sent, under another number."""
        self.db.execute("UPDATE edit SET unsure = 1 WHERE sent AND vals IS NULL")
        for e in self._edits():
            if e.sent:
                self._unsend(e)
        self._set(batch=None, mustDrain=True)

    def _forget(self, owner):
        """The rows are of another history: they stay visible, and no edit has seen a version of the new one."""
        self._thaw()
        self.db.execute("DELETE FROM row WHERE owner = ? AND deleted", [owner])
        self.db.execute("UPDATE row SET ts = 0 WHERE owner = ?", [owner])
        self.db.execute("UPDATE edit SET base = 0 WHERE owner = ?", [owner])

    def _rebase(self, access):
        """Everything is pulled: what remains of the edits is what the server does not have."""
        for row in self._all("SELECT * FROM row WHERE ts = 0"):  # not in the new history
            edits = self._edits(row.key)
            vals = visible(row, edits)
            self.db.execute(f"DELETE FROM row WHERE {KEY}", row.key)
            if vals is not None and access.get(row.owner) == "write":
                self._edit(row.key, vals, edits[-1].at if edits else "1970-01-01T00:00:00Z")
        for e in self._edits():
            row = self._row(e.key)
            if e.vals is None or row.deleted:
                continue  # freezing drops the deletion of what is not there
            vals = {c: v for c, v in e.vals.items() if c not in row.vals or row.vals[c] != v}
            if vals:
                self.db.execute(f"UPDATE edit SET vals = ? WHERE {KEY}", [to_json(vals), *e.key])
            else:
                self._drop(e)
        self._set(mustDrain=None)


COMMANDS = {"sync": 0, "put": 3, "delete": 2, "rows": 1, "pending": 0, "aside": 0, "resend": 1, "discard": 1}


def main(path, server, caller, command, *arguments):
    """weir_client.py FILE SERVER SYNCID COMMAND: sync, put TABLE ID VALUES, delete TABLE ID, rows TABLE, pending,
    aside, resend NUMBER, discard NUMBER"""
    if COMMANDS.get(command) != len(arguments):
        sys.exit(main.__doc__)
    try:
        arguments = [json.loads(a) if i == 2 else a for i, a in enumerate(arguments)]
        client = Client(path, server, lambda: {"X-Sync-Id": urllib.parse.quote(caller, safe="")})
        result = getattr(client, command)(*arguments)
    except json.JSONDecodeError as error:
        sys.exit(f"VALUES is a JSON object: {error}")
    except OtherLayout as error:
        sys.exit(str(error))
    except SyncError as error:
        sys.exit(f"{error} (status {error.status}, code {error.code}, retry after {error.retry_after})")
    if result is not None:
        print(json.dumps(result, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) > 4 else sys.exit(main.__doc__)

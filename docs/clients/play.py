#!/usr/bin/env python3
"""Plays fixtures against weir_client.py: play.py [--server URL] [--record] FIXTURE...

Without a server the answers are those of the fixture. With one they are the server's, and have to be those of the fixture; it must be
new, for one fixture alone, and have the fixture's settings:
weir run --schema schema.yaml --clock 'sequence(100)' --partitions 1 --data NEW-FOLDER
"""
import json, os, sys, tempfile, urllib.parse
from weir_client import Client, SyncError, http_transport

EPOCH = "epoch-1"  # the server's, as fixtures name it


class Player:
    def __init__(self, fixture, folder, server=None):
        self.fixture, self.path, self.server = fixture, os.path.join(folder, "device.sqlite"), server
        self.headers, self.ids = {"X-Sync-Id": "ada"}, iter(fixture["devices"])
        self.epoch, self.played, self.exchanges, self.differences = EPOCH, [], [], []
        self.client = self.open()

    def open(self):
        server = self.server or "http://fixture"
        client = Client(self.path, server, lambda: self.headers, self.transport, new_id=lambda: next(self.ids))
        client.limit = self.fixture.get("limit", client.limit)
        return client

    def play(self):
        for number, step in enumerate(self.fixture["steps"]):
            self.where, self.step, self.client.now = f"step {number}", step, lambda: step["at"]
            done = dict(step)
            for command in ("put", "delete", "resend", "discard"):
                if command in step:
                    getattr(self.client, command)(*step[command])
            if "headers" in step:
                self.headers = step["headers"]
            if "restart" in step:
                self.client.db.close()
                self.client = self.open()
            if "elsewhere" in step and self.server:
                self.send_elsewhere(step["elsewhere"])
            if "sync" in step:
                done |= self.sync(step)
            if "expect" in step:
                done["expect"] = {name: self.state(name, value) for name, value in step["expect"].items()}
                self.compare(step["expect"], done["expect"], "state")
            self.played.append(done)
        return self.differences

    def sync(self, step):
        self.exchanges, self.waiting, error = [], list(step["sync"]), None
        try:
            self.client.sync()
        except SyncError as e:
            error = {"status": e.status, "code": e.code, "retryAfter": e.retry_after}
        self.compare(step.get("error"), error, "error")
        self.compare([], self.waiting, "requests that were not sent")
        return {"sync": self.exchanges} | ({"error": error} if error else {})

    def state(self, name, value):
        if name == "rows":
            seen = {table: self.client.rows(*table.split("/")) for table in value}
            return {table: {id: {c: v for c, v in vals.items() if v is not None} for id, vals in rows.items()}
                    for table, rows in seen.items()}
        return self.plain({"pending": self.client.pending, "aside": self.client.aside, "knowledge": self.client.knowledge}[name]())

    def transport(self, method, url, body, headers):
        exchange = self.waiting.pop(0) if self.waiting else {}
        path = url[len(self.server or "http://fixture"):]
        request = {"method": method, "path": path} | ({"body": self.plain(json.loads(body))} if body else {})
        self.compare(exchange.get("request"), request, "request")
        self.headers = exchange.get("renewed", self.headers)
        answered = {"request": request} | {k: v for k, v in exchange.items() if k not in ("request", "answer")}
        self.exchanges.append(answered)
        if exchange.get("lost") == "request":
            raise ConnectionResetError("the request was lost")
        if self.server:
            status, fields, text = http_transport(method, url, body, headers)
            real = json.loads(text)
            if self.epoch == EPOCH:
                self.epoch = real["epoch"]
            answered["answer"] = self.plain(real)
            self.compare(exchange.get("status", 200), status, "status")
            self.compare(exchange.get("answer"), answered["answer"], "answer")
        else:
            answered["answer"] = exchange.get("answer")
            text = exchange["text"] if "text" in exchange else json.dumps(exchange.get("answer"))
            status, fields = exchange.get("status", 200), exchange.get("headers", {})
        if exchange.get("lost") == "answer":
            raise ConnectionResetError("the answer was lost")
        return status, fields, text

    def send_elsewhere(self, request):
        """What another device does."""
        status, _, text = http_transport(
            "POST", self.server + "/v1/sync", json.dumps(request["body"]).encode(),
            {"Content-Type": "application/json"} | request.get("headers", {"X-Sync-Id": "ada"}))
        results = json.loads(text).get("batch", {}).get("results", [])
        if status != 200 or any(r["status"] != "applied" for r in results):
            self.differences.append(f"{self.where}: elsewhere: {status} {text.decode()}")

    def plain(self, value):
        """With the fixture's epoch in place of the server's."""
        return json.loads(json.dumps(value).replace(json.dumps(self.epoch), json.dumps(EPOCH)))

    def compare(self, expected, found, what):
        if expected != found:
            self.differences.append(f"{self.where}: {what}\n  expected {json.dumps(expected)}\n  found    {json.dumps(found)}")


def text_of(value, indent=0, width=140):
    """JSON on one line where it fits."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= width or not isinstance(value, (dict, list)):
        return line
    inner = " " * (indent + 2)
    if isinstance(value, list):
        return "[\n" + ",\n".join(inner + text_of(v, indent + 2) for v in value) + "\n" + " " * indent + "]"
    lines = (f"{inner}{json.dumps(k)}: {text_of(v, indent + 2)}" for k, v in value.items())
    return "{\n" + ",\n".join(lines) + "\n" + " " * indent + "}"


def main(arguments):
    server = arguments.pop(1) if arguments[:1] == ["--server"] else None
    arguments = arguments[1:] if server else arguments
    is_recording = arguments[:1] == ["--record"]
    failed = False
    for path in arguments[is_recording:]:
        with open(path, encoding="utf-8") as file:
            fixture = json.load(file)
        if server and fixture["server"] == "scripted":
            sys.exit(f"{path} has answers that no server gives: play it without --server")
        with tempfile.TemporaryDirectory() as folder:
            player = Player(fixture, folder, server)
            differences = player.play()
        if is_recording:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text_of(fixture | {"steps": player.played}) + "\n")
        elif differences:
            failed = True
            print(path, *differences, sep="\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Requests to Weir: a 200 is an answer, everything else an error (docs/clients.md, Everything that is not 200)."""
import contextlib, http.client, json, urllib.error, urllib.request


class SyncError(Exception):
    """Why sync() ended early. Nothing is lost: call it again, not before retry_after seconds."""

    def __init__(self, message, status=None, code=None, retry_after=None):
        super().__init__(message)
        self.status, self.code, self.retry_after = status, code, retry_after


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirection is that of a network that asks to log in: it is an error, and no answer."""

    def redirect_request(self, *_):
        return None


def http_transport(method, url, body, headers, opener=urllib.request.build_opener(NoRedirects)):
    """Status, headers and body of an answer; raises OSError or HTTPException if there is none, or not all of it."""
    try:
        with opener.open(urllib.request.Request(url, body, headers, method=method), timeout=70) as response:
            return response.status, response.headers, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def request(transport, method, url, body, headers):
    """The object in a 200."""
    try:
        status, fields, text = transport(method, url, body, {"Content-Type": "application/json", **headers})
    except (OSError, http.client.HTTPException) as error:
        raise SyncError(f"no complete answer: {error}") from error
    answer = None
    with contextlib.suppress(ValueError):  # a page of a proxy, or of a network that asks to log in
        answer = json.loads(text)
    answer = answer if isinstance(answer, dict) else {}
    if status != 200:
        message = answer.get("detail") or answer.get("title") or f"status {status}"
        after = fields.get("Retry-After") or ""
        raise SyncError(message, status, answer.get("code"), int(after) if after.isdecimal() else None)
    return answer

"""As much of the Hugging Face Hub as an upload and a download of a model need, on this machine."""

import base64
import hashlib
import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

COMMIT = "0" * 39 + "1"


def tag(content):
    """What tells two contents of a file apart."""
    return hashlib.sha1(content).hexdigest()


@contextmanager
def serving():
    """The address of a Hub without repositories, and what it is told: repositories by id, each with its files."""
    repositories = {}

    class Hub(BaseHTTPRequestHandler):
        def log_message(self, *arguments):
            """Nothing is printed."""

        def answer(self, content, code=200, headers=()):
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(code)
            for name, value in (("Content-Length", str(len(body))), *headers):
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_POST(self):
            sent = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/api/repos/create":
                asked = json.loads(sent)
                name = f"{asked['organization']}/{asked['name']}"
                repositories[name] = {
                    "private": asked.get("private"),
                    "visibility": asked.get("visibility"),
                    "files": {},
                }
                self.answer({"url": f"{address}/{name}", "name": name})
                return
            if self.path == "/api/validate-yaml":  # of the card
                self.answer({"errors": [], "warnings": []})
                return
            name = "/".join(self.path.split("/")[3:5])
            files = repositories[name]["files"]
            if "/preupload/" in self.path:
                asked = [{"path": each["path"], "uploadMode": "regular"} for each in json.loads(sent)["files"]]
                self.answer({"files": [each | {"shouldIgnore": False} for each in asked]})
                return
            for line in map(json.loads, sent.splitlines()):
                if line["key"] == "file":
                    files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            self.answer({"commitUrl": f"{address}/{name}/commit/{COMMIT}", "commitOid": COMMIT, "success": True})

        def do_GET(self):
            if self.path.startswith("/api/models/"):
                name = "/".join(self.path.split("/")[3:5])
                if name not in repositories:
                    self.answer({"error": "Repository not found"}, 404, [("X-Error-Code", "RepoNotFound")])
                    return
                if "/tree/" in self.path:
                    files = repositories[name]["files"].items()
                    self.answer([{"type": "file", "path": path, "size": len(c), "oid": tag(c)} for path, c in files])
                else:
                    self.answer({"id": name, "sha": COMMIT})
                return
            if "/resolve/" not in self.path:
                self.answer({"error": "not here"}, 404)
                return
            owner, model, _, _, file = self.path.lstrip("/").split("/")
            content = repositories[f"{owner}/{model}"]["files"][file]
            self.answer(content, headers=[("ETag", f'"{tag(content)}"'), ("X-Repo-Commit", COMMIT)])

        do_HEAD = do_GET

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    address = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield address, repositories
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

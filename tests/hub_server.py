"""A Hub on loopback: real HTTP for the real `huggingface_hub` client; models, data sets, Spaces, tokens and faults.

```python
with Hub() as hub:
    run(env=hub.env(cache))  # HF_ENDPOINT, a token and an empty cache: the client reads them when it is imported
    hub.repo("me/x").files()
```

Small files travel in commits, large ones as LFS objects that `resolve` redirects to, as on the Hub. A
fault cuts a connection in the middle of a body, going up or down.
"""

import base64
import hashlib
import json
import re
import socket
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

LFS_BYTES = 5_000
TOKEN, OTHER_TOKEN = "hf_owner", "hf_stranger"  # of the user "me", and of a user who may see public repositories only
WHEN = "2026-01-01T00:00:00.000Z"


def is_lfs(path: str, size: int) -> bool:
    return size >= LFS_BYTES or path.endswith((".parquet", ".safetensors"))


@dataclass
class Repo:
    """Commits by sha (a commit is `{path: bytes}`), and the branches and tags that name them."""

    type: str
    id: str
    private: bool = False
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        self.commit("main", {})

    def commit(self, branch: str, files: dict[str, bytes]) -> str:
        name = f"{self.type}{self.id}{len(self.commits)}".encode()
        sha = hashlib.sha1(name).hexdigest()
        self.commits[sha], self.refs[branch] = dict(files), sha
        return sha

    def sha(self, revision: str) -> str | None:
        return self.refs.get(revision, revision if revision in self.commits else None)

    def files(self, revision: str = "main") -> dict[str, bytes]:
        return self.commits[self.sha(revision)]


@dataclass
class Fault:
    """Cut the connection of the next `times` requests like this one after `after` bytes of the body."""

    method: str
    path: str  # a regular expression
    after: int
    times: int


class Hub:
    """The server, in a thread of its own. Tests may look into `repos` and `requests`, and add `faults`."""

    def __init__(self):
        self.repos: dict[tuple[str, str], Repo] = {}
        self.objects: dict[str, bytes] = {}  # LFS, by sha256
        self.requests: list[tuple[str, str, int]] = []  # method, path, first byte of the range asked for
        self.faults: list[Fault] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"hub": self}))
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self.storage = (
            f"http://localhost:{self._server.server_port}"  # large files come from another host, as on the Hub
        )

    def __enter__(self) -> "Hub":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error) -> None:
        self._server.shutdown()
        self._server.server_close()

    def env(self, cache, token: str | None = TOKEN) -> dict[str, str]:
        """What a process needs to see this Hub and no other, with its caches under `cache`."""
        return {
            "HF_ENDPOINT": self.endpoint,
            "HF_HOME": str(cache),
            "HF_HUB_DISABLE_XET": "1",  # that protocol is not spoken here
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_IMPLICIT_TOKEN": "0" if token else "1",
            "HF_HUB_OFFLINE": "0",
            "NO_PROXY": "127.0.0.1,localhost",
            **({"HF_TOKEN": token} if token else {}),
        }

    def repo(self, id: str, type: str = "model", **settings) -> Repo:
        """A repository, made if it is not there."""
        return self.repos.setdefault((type, id), Repo(type, id, **settings))

    def cut(self, method: str, path: str, after: int, times: int = 1) -> Fault:
        self.faults.append(Fault(method, path, after, times))
        return self.faults[-1]

    def fault(self, method: str, path: str) -> Fault | None:
        with self._lock:
            for fault in self.faults:
                if fault.times and fault.method == method and re.search(fault.path, path):
                    fault.times -= 1
                    return fault
        return None


class Refusal(Exception):
    """An answer with an error code, as the Hub gives them."""

    def __init__(self, status: int, code: str | None, message: str):
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    ROUTES = [
        ("GET", r"/api/whoami-v2", "whoami"),
        ("POST", r"/api/validate-yaml", "validate"),
        ("POST", r"/api/repos/create", "create"),
        ("POST", r"/api/(?P<type>\w+)s/(?P<id>[^/]+/[^/]+)/preupload/(?P<rev>[^/]+)", "preupload"),
        ("POST", r"/api/(?P<type>\w+)s/(?P<id>[^/]+/[^/]+)/commit/(?P<rev>[^/]+)", "commit"),
        ("POST", r"/api/(?P<type>\w+)s/(?P<id>[^/]+/[^/]+)/branch/(?P<rev>[^/]+)", "branch"),
        ("POST", r"/api/(?P<type>\w+)s/(?P<id>[^/]+/[^/]+)/paths-info/(?P<rev>[^/]+)", "paths_info"),
        ("GET", r"/api/(?P<type>\w+)s/(?P<id>[^/]+/[^/]+)/tree/(?P<rev>[^/]+)/?(?P<path>.*)", "tree"),
        ("GET", r"/api/(?P<type>\w+)s/(?P<id>[^/]+/[^/]+)(?:/revision/(?P<rev>[^/]+))?", "info"),
        ("POST", r"/(?:(?P<type>\w+)s/)?(?P<id>[^/]+/[^/]+)\.git/info/lfs/objects/batch", "lfs_batch"),
        ("PUT", r"/lfs/(?P<oid>\w+)", "lfs_put"),
        ("GET", r"/lfs/(?P<oid>\w+)", "lfs_get"),
        ("GET", r"/(?:(?P<type>\w+)s/)?(?P<id>[^/]+/[^/]+)/resolve/(?P<rev>[^/]+)/(?P<path>.+)", "resolve"),
    ]

    def answer(self) -> None:
        url = urlsplit(self.path)
        self.query = parse_qs(url.query)
        start = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        self.start = int(start[1]) if start else 0
        self.hub.requests.append((self.command, url.path, self.start))
        self.cut = self.hub.fault(self.command, url.path)
        self.body = self.read_body()
        if self.body is None:
            return self.hang_up()
        method = "GET" if self.command == "HEAD" else self.command
        try:
            for verb, pattern, name in self.ROUTES:
                if verb == method and (match := re.fullmatch(pattern, url.path)):
                    parts = {key: unquote(value) for key, value in match.groupdict().items() if value is not None}
                    return getattr(self, name)(**parts)
            raise Refusal(404, None, f"no route {self.command} {url.path}")
        except Refusal as refusal:
            code = {"X-Error-Code": refusal.code} if refusal.code else {}
            body = json.dumps({"error": refusal.message}).encode()
            self.send(body, refusal.status, {**code, "X-Error-Message": refusal.message})

    do_GET = do_HEAD = do_POST = do_PUT = answer

    def log_message(self, *args) -> None:
        pass

    # ------------------------------------------------------------------------------------------------------ plumbing

    def read_body(self) -> bytes | None:
        """The request's body; None if it is cut."""
        limit = self.cut.after if self.cut and self.command in ("PUT", "POST") else None
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline().strip(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
                if limit is not None and len(body) >= limit:
                    return None
            self.rfile.readline()
            return body
        size = int(self.headers.get("Content-Length", 0))
        if limit is not None and size > limit:
            self.rfile.read(limit)
            return None
        return self.rfile.read(size)

    def hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def json(self):
        return json.loads(self.body)

    def reply(self, content, status: int = 200) -> None:
        self.send(json.dumps(content).encode(), status, {"Content-Type": "application/json"})

    def send(self, body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        headers = dict(headers or {})
        if self.start and status == 200:
            headers["Content-Range"] = f"bytes {self.start}-{len(body) - 1}/{len(body)}"
            body, status = body[self.start :], 206
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.cut and self.command == "GET" and len(body) > self.cut.after:
            self.wfile.write(body[: self.cut.after])
            self.wfile.flush()
            return self.hang_up()
        self.wfile.write(body)

    @property
    def user(self) -> str | None:
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        if not scheme:
            return None
        if token not in (TOKEN, OTHER_TOKEN):
            raise Refusal(401, None, "Invalid credentials in Authorization header")
        return "me" if token == TOKEN else "stranger"

    def find(self, id: str, type: str = "model", rev: str | None = None, write: bool = False) -> tuple[Repo, str]:
        """The repository and the commit that a revision means, if this user may see (or change) it."""
        repo, user = self.hub.repos.get((type, id)), self.user
        if repo is None or (repo.private and user != "me"):
            raise Refusal(404 if user else 401, "RepoNotFound", "Repository not found")
        if write and user != id.split("/")[0]:
            raise Refusal(403, None, "You don't have the rights to create a commit here")
        if (sha := repo.sha(rev or "main")) is None:
            raise Refusal(404, "RevisionNotFound", f"Invalid rev id: {rev}")
        return repo, sha

    def entry(self, path: str, content: bytes) -> dict:
        row = {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
        if is_lfs(path, len(content)):
            row["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
        return row

    # -------------------------------------------------------------------------------------------------------- routes

    def whoami(self) -> None:
        if self.user is None:
            raise Refusal(401, None, "Invalid username or password.")
        self.reply({"type": "user", "name": self.user, "orgs": [], "auth": {"accessToken": {"role": "write"}}})

    def validate(self) -> None:
        self.reply({"errors": [], "warnings": []})

    def create(self) -> None:
        body = self.json()
        if self.user is None:
            raise Refusal(401, None, "Invalid username or password.")
        owner, type = body.get("organization") or self.user, body.get("type") or "model"
        if owner != self.user:
            raise Refusal(403, None, f"You don't have the rights to create a {type} under the namespace {owner!r}")
        id = f"{owner}/{body['name']}"
        url = f"{self.hub.endpoint}/{'' if type == 'model' else type + 's/'}{id}"
        if (type, id) in self.hub.repos:
            return self.reply({"error": "You already created this repo", "url": url}, 409)
        self.hub.repo(id, type, private=bool(body.get("private")) or body.get("visibility") == "private")
        self.reply({"url": url, "name": id, "id": id})

    def preupload(self, type: str, id: str, rev: str) -> None:
        self.find(id, type, rev, write=True)
        self.reply(
            {
                "files": [
                    {
                        "path": file["path"],
                        "uploadMode": "lfs" if is_lfs(file["path"], file["size"]) else "regular",
                        "shouldIgnore": False,
                        "oid": None,
                    }
                    for file in self.json()["files"]
                ]
            }
        )

    def lfs_batch(self, id: str, type: str = "model") -> None:
        self.find(id, type, write=True)
        rows = []
        for row in self.json()["objects"]:
            if row["oid"] not in self.hub.objects:  # what is here already is not uploaded again
                row["actions"] = {"upload": {"href": f"{self.hub.storage}/lfs/{row['oid']}", "header": {}}}
            rows.append(row)
        self.reply({"transfer": "basic", "objects": rows})

    def lfs_put(self, oid: str) -> None:
        if hashlib.sha256(self.body).hexdigest() != oid:
            raise Refusal(400, None, "The content does not match its sha256")
        self.hub.objects[oid] = self.body
        self.send(b"")

    def lfs_get(self, oid: str) -> None:
        self.send(self.hub.objects[oid], headers={"ETag": f'"{oid}"', "Accept-Ranges": "bytes"})

    def commit(self, type: str, id: str, rev: str) -> None:
        repo, sha = self.find(id, type, rev, write=True)
        files = dict(repo.commits[sha])
        for line in self.body.splitlines():
            row = json.loads(line)
            value = row["value"]
            if row["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif row["key"] == "lfsFile":
                files[value["path"]] = self.hub.objects[value["oid"]]
            elif row["key"] == "deletedFile":
                del files[value["path"]]
        oid = repo.commit(rev, files)
        self.reply({"commitUrl": f"{self.hub.endpoint}/{id}/commit/{oid}", "commitOid": oid})

    def branch(self, type: str, id: str, rev: str) -> None:
        repo, sha = self.find(id, type, write=True)
        if rev in repo.refs:
            return self.reply({"error": "Reference already exists"}, 409)
        repo.refs[rev] = sha
        self.reply({})

    def info(self, type: str, id: str, rev: str | None = None) -> None:
        repo, sha = self.find(id, type, rev)
        files = repo.commits[sha]
        self.reply(
            {
                "id": id,
                "modelId": id,
                "author": id.split("/")[0],
                "sha": sha,
                "lastModified": WHEN,
                "createdAt": WHEN,
                "private": repo.private,
                "gated": False,
                "disabled": False,
                "downloads": 0,
                "likes": 0,
                "tags": [],
                "siblings": [{"rfilename": path, "size": len(content)} for path, content in files.items()],
            }
        )

    def tree(self, type: str, id: str, rev: str, path: str = "") -> None:
        repo, sha = self.find(id, type, rev)
        below = f"{path}/" if path else ""
        files = {name: content for name, content in repo.commits[sha].items() if name.startswith(below)}
        if path and not files:
            raise Refusal(404, "EntryNotFound", f"{path} does not exist")
        recursive = self.query.get("recursive", ["false"])[0].lower() in ("true", "1")
        rows = {}
        for name, content in files.items():
            folder, _, rest = name[len(below) :].partition("/")
            if rest:
                rows[below + folder] = {"type": "directory", "path": below + folder, "oid": "0" * 40, "size": 0}
            if recursive or not rest:
                rows[name] = self.entry(name, content)
        self.reply(list(rows.values()))

    def paths_info(self, type: str, id: str, rev: str) -> None:
        repo, sha = self.find(id, type, rev)
        form = self.body.decode()
        paths = json.loads(form)["paths"] if form.startswith("{") else parse_qs(form).get("paths", [])
        rows = []
        for path in paths:
            if path in repo.commits[sha]:
                rows.append(self.entry(path, repo.commits[sha][path]))
            elif any(name.startswith(f"{path}/") for name in repo.commits[sha]):
                rows.append({"type": "directory", "path": path, "oid": "0" * 40, "size": 0})
        self.reply(rows)

    def resolve(self, id: str, rev: str, path: str, type: str = "model") -> None:
        repo, sha = self.find(id, type, rev)
        headers = {"X-Repo-Commit": sha, "Accept-Ranges": "bytes"}
        if (content := repo.commits[sha].get(path)) is None:
            self.send_headers_of_missing(sha, path)
        elif is_lfs(path, len(content)):
            oid = hashlib.sha256(content).hexdigest()
            self.hub.objects.setdefault(oid, content)
            linked = {"X-Linked-Etag": f'"{oid}"', "X-Linked-Size": str(len(content))}
            self.start = 0
            self.send(b"", 302, {**headers, **linked, "Location": f"{self.hub.storage}/lfs/{oid}"})
        else:
            self.send(content, headers={**headers, "ETag": f'"{hashlib.sha1(content).hexdigest()}"'})

    def send_headers_of_missing(self, sha: str, path: str) -> None:
        message = f"{path} does not exist"
        headers = {"X-Repo-Commit": sha, "X-Error-Code": "EntryNotFound", "X-Error-Message": message}
        self.send(json.dumps({"error": message}).encode(), 404, headers)

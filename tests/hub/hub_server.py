"""A small Hub on loopback: the requests that `huggingface_hub` makes to push a model and to load it again."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKENS = {"hf_token_of_me_0123456789": "me", "hf_token_of_ann_0123456789": "ann"}
MY_TOKEN, ANNS_TOKEN = TOKENS
REPO = r"(?P<repo>[\w.-]+/[\w.-]+)"


@dataclass(frozen=True)
class Blob:
    content: bytes
    is_lfs: bool = False

    @property
    def oid(self) -> str:
        return hashlib.sha1(b"blob %d\0" % len(self.content) + self.content).hexdigest()

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


Files = dict[str, Blob]


@dataclass
class Repo:
    private: bool = False
    commits: dict[str, Files] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)

    def commit(self, branch: str, files: Files) -> str:
        content = f"{len(self.commits)} {sorted((path, blob.oid) for path, blob in files.items())}"
        sha = hashlib.sha1(content.encode()).hexdigest()
        self.commits[sha], self.branches[branch] = files, sha
        return sha

    def files(self, branch: str = "main") -> dict[str, bytes]:
        return {path: blob.content for path, blob in self.commits[self.branches[branch]].items()}


@dataclass
class Failure:
    """Requests whose method and path match are answered with `status`, or not at all (0), so many times."""

    pattern: str
    status: int
    times: int
    is_done_first: bool = False


class HubError(Exception):
    def __init__(self, status: int, message: str, code: str | None = None, **answer: str):
        super().__init__(message)
        self.status, self.code, self.answer = status, code, answer


class Hub:
    """What the server knows, for tests to look at and to break."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.lfs: dict[str, bytes] = {}
        self.collections: dict[str, dict[str, Any]] = {}
        self.requests: list[str] = []
        self.failures: list[Failure] = []
        self.max_siblings: int | None = None
        self.url = ""
        self.lock = threading.Lock()

    def fail(self, pattern: str, status: int, times: int = 1, is_done_first: bool = False) -> None:
        self.failures.append(Failure(pattern, status, times, is_done_first))

    def next_failure(self, request: str) -> Failure | None:
        for failure in self.failures:
            if failure.times > 0 and re.search(failure.pattern, request):
                failure.times -= 1
                return failure
        return None

    def count(self, pattern: str) -> int:
        return sum(bool(re.search(pattern, request)) for request in self.requests)

    def find(self, repo_id: str, user: str | None) -> Repo:
        repo = self.repos.get(repo_id)
        if repo is None or (repo.private and repo_id.split("/")[0] != user):
            raise HubError(404, "Repository not found", "RepoNotFound")
        return repo

    def find_commit(self, repo: Repo, revision: str) -> str:
        sha = repo.branches.get(revision, revision)
        if sha not in repo.commits:
            raise HubError(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return sha


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._respond()

    do_HEAD = do_POST = do_PUT = do_GET

    def _respond(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = f"{self.command} {path}"
        with self.hub.lock:
            self.hub.requests.append(request)
            failure = self.hub.next_failure(request)
            if failure is None:
                self._answer(request)
                return
            if failure.is_done_first:
                self._route(request)
        if failure.status:
            self._send(failure.status, {"error": "Something went wrong"})
        else:
            self.close_connection = True

    def _answer(self, request: str) -> None:
        try:
            answer = self._route(request)
        except HubError as error:
            headers = {"X-Error-Message": str(error)} | ({"X-Error-Code": error.code} if error.code else {})
            self._send(error.status, {"error": str(error), **error.answer}, headers)
            return
        if isinstance(answer, tuple):
            self._send(200, *answer)
        else:
            self._send(200, answer)

    def _route(self, request: str) -> Any:
        self.user = self._who()
        for pattern, method in ROUTES:
            match = re.fullmatch(pattern, request)
            if match:
                return method(self, **match.groupdict())
        raise HubError(404, "There is no such page")

    def _who(self) -> str | None:
        header = self.headers.get("Authorization")
        if header is None:
            return None
        token = header.removeprefix("Bearer ")
        if token not in TOKENS:
            raise HubError(401, "Invalid credentials in Authorization header")
        return TOKENS[token]

    def _send(self, status: int, answer: Any, headers: dict[str, str] | None = None) -> None:
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _writable(self, repo: str) -> Repo:
        found = self.hub.find(repo, self.user)
        if repo.split("/")[0] != self.user:
            raise HubError(403, "You don't have the rights to write here")
        return found

    def who_am_i(self) -> Any:
        if self.user is None:
            raise HubError(401, "Invalid username or password.")
        return {"type": "user", "name": self.user, "orgs": []}

    def create(self) -> Any:
        asked = json.loads(self.body)
        owner = asked.get("organization") or self.user
        if owner != self.user:
            raise HubError(403, f"You don't have the rights to create a model under the namespace {owner}")
        repo_id = f"{owner}/{asked['name']}"
        url = f"{self.hub.url}/{repo_id}"
        if repo_id in self.hub.repos:
            raise HubError(409, "You already created this model repo", url=url)
        repo = Repo(private=asked.get("visibility") == "private")
        repo.commit("main", {".gitattributes": Blob(b"*.safetensors filter=lfs\n")})
        self.hub.repos[repo_id] = repo
        return {"url": url, "name": repo_id, "id": repo_id}

    def info(self, repo: str, revision: str = "main") -> Any:
        found = self.hub.find(repo, self.user)
        sha = self.hub.find_commit(found, revision)
        siblings = [{"rfilename": path} for path in found.commits[sha]][: self.hub.max_siblings]
        return {
            "id": repo,
            "modelId": repo,
            "sha": sha,
            "private": found.private,
            "tags": [],
            "siblings": siblings,
            "downloads": 0,
            "likes": 0,
        }

    def tree(self, repo: str, revision: str, folder: str | None = None) -> Any:
        found = self.hub.find(repo, self.user)
        files = found.commits[self.hub.find_commit(found, revision)]
        if folder is not None:
            files = {path: blob for path, blob in files.items() if path.startswith(f"{folder}/")}
            if not files:
                raise HubError(404, f"{folder} does not exist", "EntryNotFound")
        return [_tree_entry(path, blob) for path, blob in files.items()]

    def validate(self) -> Any:
        return {"errors": [], "warnings": []}

    def branch(self, repo: str, revision: str) -> Any:
        found = self._writable(repo)
        if revision in found.branches:
            raise HubError(409, "Reference already exists")
        found.branches[revision] = found.branches["main"]
        return {}

    def preupload(self, repo: str, revision: str) -> Any:
        found = self._writable(repo)
        files = found.commits[self.hub.find_commit(found, revision)]
        return {"files": [_upload_mode(entry["path"], files) for entry in json.loads(self.body)["files"]]}

    def lfs_batch(self, repo: str) -> Any:
        self._writable(repo)
        objects = []
        for entry in json.loads(self.body)["objects"]:
            upload = {"upload": {"href": f"{self.hub.url}/lfs/{entry['oid']}"}}
            actions = {} if entry["oid"] in self.hub.lfs else {"actions": upload}
            objects.append({"oid": entry["oid"], "size": entry["size"], **actions})
        return {"transfer": "basic", "objects": objects}

    def lfs_put(self, oid: str) -> Any:
        if hashlib.sha256(self.body).hexdigest() != oid:
            raise HubError(400, "The content is not what it was said to be")
        self.hub.lfs[oid] = self.body
        return {}

    def commit(self, repo: str, revision: str) -> Any:
        found = self._writable(repo)
        parent = self.hub.find_commit(found, revision)
        files = dict(found.commits[parent])
        for line in self.body.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "header" and value.get("parentCommit", parent) != parent:
                raise HubError(412, "A commit has happened since. Please refresh and try again.")
            if entry["key"] == "file":
                files[value["path"]] = Blob(base64.b64decode(value["content"]))
            if entry["key"] == "lfsFile":
                files[value["path"]] = Blob(self.hub.lfs[value["oid"]], is_lfs=True)
            if entry["key"] == "deletedFile":
                del files[value["path"]]
        sha = found.commit(revision, files)
        return {"success": True, "commitOid": sha, "commitUrl": f"{self.hub.url}/{repo}/commit/{sha}"}

    def resolve(self, repo: str, revision: str, path: str) -> Any:
        found = self.hub.find(repo, self.user)
        sha = self.hub.find_commit(found, revision)
        blob = found.commits[sha].get(path)
        if blob is None:
            raise HubError(404, "Entry not found", "EntryNotFound")
        headers = {"ETag": f'"{blob.sha256 if blob.is_lfs else blob.oid}"', "X-Repo-Commit": sha}
        return blob.content, headers

    def list_collections(self) -> Any:
        owner = parse_qs(urlsplit(self.path).query)["owner"][0]
        found = [one for one in self.hub.collections.values() if one["owner"] == owner]
        # As the Hub does: the first items only, and no position, which is that in the list.
        shown = [{**one, "items": one["items"][:4]} for one in found]
        return [{name: value for name, value in one.items() if name != "position"} for one in shown]

    def create_collection(self) -> Any:
        asked = json.loads(self.body)
        if asked["namespace"] != self.user:
            raise HubError(403, "You don't have the rights to create a collection here")
        words = re.sub(r"[^a-z0-9]+", "-", asked["title"].lower()).strip("-")
        slug = f"{self.user}/{words}-{hashlib.sha1(words.encode()).hexdigest()[:24]}"
        if slug in self.hub.collections:
            raise HubError(409, "You already have this collection", slug=slug)
        self.hub.collections[slug] = {
            "slug": slug,
            "title": asked["title"],
            "description": asked.get("description"),
            "owner": self.user,
            "items": [],
            "lastUpdated": "2026-11-19T00:00:00.000Z",
            "position": 0,
            "private": asked["private"],
            "theme": "green",
            "upvotes": 0,
        }
        return self.hub.collections[slug]

    def collection(self, slug: str) -> Any:
        if slug not in self.hub.collections:
            raise HubError(404, "Collection not found")
        return self.hub.collections[slug]

    def add_item(self, slug: str) -> Any:
        asked, collection = json.loads(self.body), self.collection(slug)
        if collection["owner"] != self.user:
            raise HubError(403, "You don't have the rights to write here")
        item = asked["item"]
        self.hub.find(item["id"], self.user)
        if item["id"] in [one["id"] for one in collection["items"]]:
            raise HubError(409, "This item is already in the collection")
        own = {"_id": f"{len(collection['items']):024d}", "position": len(collection["items"])}
        collection["items"].append({**item, **own, "note": {"text": asked["note"]}})
        return collection


def _tree_entry(path: str, blob: Blob) -> dict[str, Any]:
    entry = {"type": "file", "path": path, "size": len(blob.content), "oid": blob.oid}
    if blob.is_lfs:
        entry["lfs"] = {"oid": blob.sha256, "size": len(blob.content), "pointerSize": 130}
    return entry


def _upload_mode(path: str, files: Files) -> dict[str, Any]:
    mode = "lfs" if path.endswith(".safetensors") else "regular"
    known = {"oid": files[path].sha256 if mode == "lfs" else files[path].oid} if path in files else {}
    return {"path": path, "uploadMode": mode, "shouldIgnore": False, **known}


ROUTES = [
    (r"GET /api/whoami-v2", Handler.who_am_i),
    (r"POST /api/repos/create", Handler.create),
    (r"POST /api/validate-yaml", Handler.validate),
    (rf"GET /api/models/{REPO}", Handler.info),
    (rf"GET /api/models/{REPO}/revision/(?P<revision>.+)", Handler.info),
    (rf"GET /api/models/{REPO}/tree/(?P<revision>[^/]+)(?:/(?P<folder>.+))?", Handler.tree),
    (rf"POST /api/models/{REPO}/branch/(?P<revision>.+)", Handler.branch),
    (rf"POST /api/models/{REPO}/preupload/(?P<revision>.+)", Handler.preupload),
    (rf"POST /api/models/{REPO}/commit/(?P<revision>.+)", Handler.commit),
    (rf"POST /{REPO}\.git/info/lfs/objects/batch", Handler.lfs_batch),
    (r"PUT /lfs/(?P<oid>\w+)", Handler.lfs_put),
    (r"GET /api/collections", Handler.list_collections),
    (r"POST /api/collections", Handler.create_collection),
    (r"GET /api/collections/(?P<slug>[^/]+/[^/]+)", Handler.collection),
    (r"POST /api/collections/(?P<slug>[^/]+/[^/]+)/items", Handler.add_item),
    (rf"(?:GET|HEAD) /{REPO}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", Handler.resolve),
]


@contextmanager
def serve_hub() -> Iterator[Hub]:
    """A Hub with nothing in it, until the block ends."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("BoundHandler", (Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()

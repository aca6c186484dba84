"""Cut connections, missing rights and full disks: resumed, or said in one sentence, and never half a model."""

import hashlib
import shutil
import subprocess

import pytest
from hub_server import OTHER_TOKEN, TOKEN

pytestmark = pytest.mark.xdist_group("hub trouble")

TELL = """
import contextlib, huggingface_hub, io, os, time, hf_spanner
from hf_spanner import cli
from hf_spanner.loading import load_model
time.sleep = lambda seconds: None  # the client waits longer and longer before it tries again
huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE = 50_000  # what is kept of a download that is cut, else 10 MB at a time

def tell(do, *arguments, **named):
    try:
        return type(do(*arguments, **named)).__name__
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def command(*argv):
    with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(io.StringIO()):
        code = cli.main(list(argv))
    return f"{code} {said.getvalue()}"
"""

TROUBLE = """
answer = {}
model, tokenizer = load_model(FOLDER)
answer["pushed once"] = tell(model.push_to_hub, "me/cut-once")
answer["pushed"] = [tell(model.push_to_hub, "me/cut-commit"), command("push", FOLDER, "me/cut-commit")]
answer["pushed again"] = tell(model.push_to_hub, "me/cut-commit")
answer["pulled once"] = tell(hf_spanner.pipeline, "me/resumes")
answer["pulled"] = [tell(hf_spanner.pipeline, "me/stops"), os.path.exists(os.environ["HF_HOME"] + "/WEIGHTS")]
answer["cut text"] = command("predict", "--model", "me/stops-early", "New York")
for _ in range(5):
    if (found := tell(hf_spanner.pipeline, "me/stops")) == "NestedNerPipeline":
        break
answer["pulled again"] = found

def try_all():
    return [
        tell(hf_spanner.pipeline, "me/private"),
        tell(load_model, "me/private"),
        command("predict", "--model", "me/private", "New York"),
        command("push", FOLDER, "me/not-mine"),
    ]

for who, token in TOKENS.items():
    os.environ.pop("HF_TOKEN", None)
    if token:
        os.environ["HF_TOKEN"] = token
    answer[who] = try_all()
answer["missing"] = [
    tell(hf_spanner.pipeline, "me/nowhere"),
    command("predict", "--model", "me/nowhere", "New York"),
    tell(hf_spanner.pipeline, "me/resumes", revision="v9"),
    tell(load_model, "me/resumes", revision="v9"),
]
answer["trusting"] = tell(hf_spanner.pipeline, "me/resumes", trust_remote_code=True)
answer["branch"] = tell(hf_spanner.pipeline, "me/resumes", revision="main")
"""


def one_sentence(answer: str, *parts: str) -> None:
    assert all(part in answer for part in parts), answer
    assert "\n" not in answer.strip() and "Traceback" not in answer


def files_of(folder) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture(scope="module")
def told(run, hub, models, tmp_path_factory):
    """What one process after the other trouble tells."""
    for name, approach in (
        ("resumes", "span_ner"),
        ("stops", "seq_ner"),
        ("stops-early", "bl_ner"),
        ("private", "sng"),
    ):
        hub.repo(f"me/{name}", private=name == "private").commit("main", files_of(models / approach))
    oid = {
        name: hashlib.sha256(hub.repo(f"me/{name}").files()["model.safetensors"]).hexdigest()
        for name in ("resumes", "stops")
    }
    hub.cut("PUT", "/lfs/", after=2000, times=1)
    hub.cut("POST", "/api/models/me/cut-commit/commit/", after=2000, times=2)
    hub.cut("GET", f"/lfs/{oid['resumes']}", after=50_000, times=1)
    hub.cut("GET", f"/lfs/{oid['stops']}", after=1_000, times=8)
    hub.cut("GET", "/me/stops-early/resolve/.*/config.json", after=100, times=100)
    hub.requests.clear()
    tokens = {"nobody": None, "wrong": "hf_wrong", "stranger": OTHER_TOKEN, "owner": TOKEN}
    weights = f"hub/models--me--stops/snapshots/{hub.repo('me/stops').sha('main')}/model.safetensors"
    code = f"FOLDER, TOKENS = {str(models / 'dspert')!r}, {tokens!r}\n" + TELL + TROUBLE.replace("WEIGHTS", weights)
    found = run(code, tmp_path_factory.mktemp("trouble") / "cache")
    hub.faults.clear()
    return found | {"oid": oid}


def test_an_upload_that_is_cut_goes_on(told, hub):
    assert told["pushed once"] == "CommitInfo"
    assert len(hub.repo("me/cut-once").files()["model.safetensors"]) > 100_000


def test_an_upload_that_cannot_go_on_changes_nothing_and_can_be_repeated(told, hub):
    direct, by_command = told["pushed"]
    one_sentence(direct, "ConnectionError: The connection broke while pushing me/cut-commit: try again")
    one_sentence(by_command, "2 hf-spanner push: The connection broke while pushing me/cut-commit")
    assert told["pushed again"] == "CommitInfo"
    repo = hub.repo("me/cut-commit")
    assert [bool(files) for files in repo.commits.values()] == [False, True]  # the new repository, then the one commit
    sent = [path for method, path, _ in hub.requests if method == "PUT"]
    assert len(sent) - len(set(sent)) == 1  # each large file once, and once more where it was cut


def test_a_download_that_is_cut_goes_on_where_it_was(told, hub):
    assert told["pulled once"] == "NestedNerPipeline"
    assert [s for m, path, s in hub.requests if m == "GET" and told["oid"]["resumes"] in path] == [0, 50_000]


def test_a_download_that_cannot_go_on_leaves_nothing_that_looks_whole_and_keeps_what_it_has(told, hub):
    direct, looks_whole = told["pulled"]
    one_sentence(direct, "ConnectionError: The connection broke while loading me/stops: try again")
    assert not looks_whole
    one_sentence(told["cut text"], "2 hf-spanner predict: ", "me/stops-early")
    assert told["pulled again"] == "NestedNerPipeline"
    starts = [s for m, path, s in hub.requests if m == "GET" and told["oid"]["stops"] in path]
    assert starts == sorted(starts) and len(starts) == 9


def test_who_may_not_see_or_write_is_told_so(told, hub):
    private = "no such model on the Hub, or it is private"
    for who, remedy in (
        ("nobody", "or log in with `hf auth login` or set HF_TOKEN"),
        ("stranger", "what your token may see"),
    ):
        for answer in told[who][:3]:
            one_sentence(answer, "There is no folder me/private", private, remedy)
    one_sentence(told["nobody"][3], "2 hf-spanner push: The Hub asks who you are before pushing me/not-mine")
    one_sentence(told["stranger"][3], "2 hf-spanner push: The Hub forbids pushing me/not-mine")
    for answer in told["wrong"]:
        one_sentence(answer, "The Hub refused the token", "wrong or expired")
    assert told["owner"][:2] == ["NestedNerPipeline", "tuple"]


def test_what_does_not_exist_is_named(told):
    for answer in told["missing"][:2]:
        one_sentence(answer, "There is no folder me/nowhere, and no such model on the Hub")
    for answer in told["missing"][2:]:
        one_sentence(answer, "FileNotFoundError: me/resumes has no revision 'v9': name a branch, a tag or a commit")
    one_sentence(told["trusting"], "ValueError: trust_remote_code=True is refused")
    assert told["branch"] == "NestedNerPipeline"


def test_a_full_disk_is_said_and_leaves_no_model(run, hub, models, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=90k none {disk} && exec "$@"', "sh"]
    if shutil.which("unshare") is None or subprocess.run([*mount, "true"], capture_output=True).returncode:
        pytest.skip("needs the right to mount a small disk with `unshare -rm`")
    hub.repo("me/big").commit("main", files_of(models / "span_ner"))
    code = f"""
os.makedirs("disk/cache/hub", exist_ok=True)
answer = [tell(hf_spanner.pipeline, "me/big")]
__import__("shutil").rmtree("disk/cache")
model, tokenizer = load_model({str(models / "span_ner")!r})
answer.append(tell(model.save_pretrained, "disk/model"))
answer.append(os.listdir("disk/model"))
"""
    cache = {"HF_HUB_CACHE": str(disk / "cache" / "hub")}
    loading, saving, left = run(TELL + code, tmp_path / "cache", before=mount, **cache)
    one_sentence(loading, "OSError: The disk is full: loading me/big was given up")
    one_sentence(saving, "OSError: The disk is full: disk/model was not saved")
    assert left == []

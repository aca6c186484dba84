"""Downloads over real HTTP from a loopback server, and archives that should not be trusted."""

import io
import json
import tarfile
import zipfile

import pytest
from hub_server import Hub

from hf_spanner.data.archives import is_archive, unpack
from hf_spanner.data.downloading import SUMS, download, sha256_of

BODY = bytes(range(256)) * 100


@pytest.fixture
def hub(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with Hub() as server:
        repo = server.repo("me/corpus", "dataset")
        repo.commit("main", {"a.bin": BODY})
        yield server


def url(hub, name="a.bin"):
    return f"{hub.endpoint}/datasets/me/corpus/resolve/main/{name}"


def asked(hub):
    return [start for method, path, start in hub.requests if method == "GET" and "/lfs/" in path]


def test_a_download_is_checked_noted_and_not_made_twice(hub, tmp_path):
    said = []
    path = download(url(hub), tmp_path, "a.bin", None, said.append)
    assert path.read_bytes() == BODY and json.loads((tmp_path / SUMS).read_text()) == {"a.bin": sha256_of(path)}
    assert sha256_of(path) in " ".join(said) and asked(hub) == [0]
    download(url(hub), tmp_path, "a.bin", None, said.append)
    assert asked(hub) == [0] and said[-1].endswith("is there already.")
    assert sorted(file.name for file in tmp_path.iterdir()) == [SUMS, "a.bin"]


def test_a_cut_connection_goes_on_from_where_it_ended(hub, tmp_path):
    hub.cut("GET", "/lfs/", after=10_000)
    assert download(url(hub), tmp_path, "a.bin", None, str).read_bytes() == BODY
    first, second = asked(hub)
    assert first == 0 and 0 < second <= 10_000


def test_after_too_many_cuts_the_next_command_goes_on(hub, tmp_path):
    hub.cut("GET", "/lfs/", after=2_000, times=5)
    with pytest.raises(ConnectionError, match="the same command goes on from where it ended"):
        download(url(hub), tmp_path, "a.bin", None, str)
    size = (tmp_path / "a.bin.part").stat().st_size
    assert 0 < size < len(BODY)
    assert download(url(hub), tmp_path, "a.bin", None, str).read_bytes() == BODY
    assert asked(hub)[-1] == size


def test_another_file_than_the_noted_one_is_refused_and_removed(hub, tmp_path):
    path = download(url(hub), tmp_path, "a.bin", None, str)
    path.write_bytes(b"spoilt")
    with pytest.raises(ValueError, match="damaged or another edition"):
        download(url(hub), tmp_path, "a.bin", None, str)
    assert not path.exists()
    with pytest.raises(ValueError, match=f"expected {'0' * 64}"):
        download(url(hub), tmp_path / "b", "a.bin", "0" * 64, str)


def test_a_page_that_is_not_there_is_one_sentence(hub, tmp_path):
    with pytest.raises(ConnectionError, match=r"cannot be downloaded: the server says 404"):
        download(url(hub, "b.bin"), tmp_path, "b.bin", None, str)
    with pytest.raises(ValueError, match="no address to download from"):
        download("file:///etc/passwd", tmp_path, "b.bin", None, str)


def as_zip(path, *names, content=b"x"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, content)
    return path


def as_tar(path, *members):
    with tarfile.open(path, "w:gz") as archive:
        for info in members:
            info = tarfile.TarInfo(info) if isinstance(info, str) else info
            info.size = 1 if info.isreg() else 0
            archive.addfile(info, io.BytesIO(b"x"))
    return path


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/evil", "..\\evil", "C:\\evil"])
def test_names_that_lead_out_of_the_folder_are_refused(tmp_path, name):
    for archive in (as_zip(tmp_path / "a.zip", name), as_tar(tmp_path / "a.tgz", name)):
        if archive.suffix == ".zip" and zipfile.ZipFile(archive).namelist() != [name]:
            continue  # zipfile itself has put it right
        with pytest.raises(ValueError, match="do not trust this archive"):
            unpack(archive, tmp_path / "inside" / "folder")
    assert not list(tmp_path.rglob("evil"))


def test_links_and_devices_are_left_out(tmp_path):
    link, device = tarfile.TarInfo("link"), tarfile.TarInfo("device")
    link.type, link.linkname, device.type = tarfile.SYMTYPE, "/etc/passwd", tarfile.CHRTYPE
    assert unpack(as_tar(tmp_path / "a.tgz", link, device, "a/b.txt"), tmp_path / "out") == 1
    assert [path.name for path in (tmp_path / "out").rglob("*")] == ["a", "b.txt"]


def test_what_archives_really_hold_is_bounded(tmp_path):
    bomb = as_zip(tmp_path / "a.zip", "a", content=b"\0" * 3_000_000)
    assert bomb.stat().st_size < 10_000
    with pytest.raises(ValueError, match="holds more than 1,000,000 bytes"):
        unpack(bomb, tmp_path / "out", max_bytes=1_000_000)
    with pytest.raises(ValueError, match="holds more than 2 files"):
        unpack(as_zip(tmp_path / "b.zip", "a", "b", "c"), tmp_path / "out", max_files=2)


def test_a_cut_archive_is_one_sentence(tmp_path):
    path = as_tar(tmp_path / "a.tgz", *(f"f{number}" for number in range(500)))
    assert is_archive(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match="cut short or damaged"):
        unpack(path, tmp_path / "out")

"""The server over real connections: the pipeline's answers, and a proper status for everything else."""

import http.client
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from approaches import ROWS
from tests_support import same_entities

pytest.importorskip("fastapi", reason="the extra [serve] is not installed")
pytest.importorskip("uvicorn", reason="the extra [serve] is not installed")

import hf_spanner
from hf_spanner.serving.app import Limits
from hf_spanner.serving.batching import Batcher
from hf_spanner.serving.running import make_server

TEXTS = ["the mayor of New York met the head of the Bank of England", "London", "", "New \ud800 York", "Größe 東京"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tokenizer):
    folder = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(0)
    next(row for row in ROWS if row.name == "span_ner").make(tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


class Running:
    """A server in a thread, and requests to it."""

    def __init__(self, folder, **limits):
        self.predictor = hf_spanner.Predictor(folder)
        self.server = make_server(self.predictor, "127.0.0.1", 0, Limits(**limits), "tiny")
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            assert self.thread.is_alive()
            time.sleep(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]

    def request(self, body=None, method="POST", path="/predict", **headers):
        """(status, headers, content) of an answer."""
        if not isinstance(body, (bytes, type(None))):
            body = json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            content = answer.read().decode()
            is_json = "json" in (answer.headers["Content-Type"] or "")
            return answer.status, answer.headers, json.loads(content) if is_json else content
        finally:
            connection.close()

    def predict(self, *given, **more):
        status, _, content = self.request(*given, **more)
        return status, content

    def stop(self):
        self.server.should_exit = True
        self.thread.join(30)
        assert not self.thread.is_alive()


@pytest.fixture(scope="module")
def server(folder):
    running = Running(folder, bytes=50_000, texts=8, characters=20_000, seconds=20)
    yield running
    running.stop()


def test_answers_are_those_of_the_pipeline(server, folder):
    ner = hf_spanner.pipeline(folder)
    status, found = server.predict({"inputs": TEXTS})
    assert status == 200 and len(found) == len(TEXTS) and any(found)
    assert all(same_entities(f, e) for f, e in zip(found, ner(TEXTS), strict=True))
    assert server.predict({"inputs": TEXTS[0]}) == (200, ner(TEXTS[0]))
    assert server.predict({"texts": [TEXTS[0]]}) == (200, [ner(TEXTS[0])])
    assert server.predict({"inputs": []}) == (200, [])
    options = {"nesting": True, "threshold": {"PER": 0.3}, "labels": ["PER"], "label_map": {"PER": "person"}}
    assert server.predict({"inputs": TEXTS[0], "parameters": options}) == (200, ner(TEXTS[0], **options))


def test_the_client_of_the_hub_can_ask(server, monkeypatch):
    from huggingface_hub import InferenceClient, constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)  # it is asked for nothing but the server
    found = InferenceClient(f"http://127.0.0.1:{server.port}/predict").token_classification(TEXTS[0])
    assert found and all(TEXTS[0][e.start : e.end] == e.word for e in found)


@pytest.mark.parametrize(
    "body, status, told",
    [
        (b"", 400, "the body is not JSON: broken JSON at column 1"),
        (b"{", 400, "is not JSON"),
        (b'{"inputs": "na\xefve"}', 400, "the body is not UTF-8: byte 14 is 0xef."),
        (b"[" * 20_000, 400, "nested too deeply"),
        (b'{"inputs": "x", "inputs": "y"}', 400, "an object has the field 'inputs' twice"),
        ([], 422, "valid dictionary"),
        ({}, 422, "give the text, or a list of texts"),
        ({"inputs": "x", "texts": "x"}, 422, "give the text, or a list of texts"),
        ({"inputs": 7}, 422, "inputs"),
        ({"inputs": ["x", None]}, 422, "inputs"),
        ({"inputs": "x", "model": "other"}, 422, "model: Extra inputs are not permitted"),
        ({"inputs": "x", "parameters": {"batch_size": 10**9}}, 422, "parameters.batch_size: Extra"),
        ({"inputs": "x", "parameters": {"threshold": "half"}}, 422, "parameters.threshold"),
        (b'{"inputs": "x", "parameters": {"threshold": NaN}}', 422, "parameters.threshold.float: Input should be a"),
        (b'{"inputs": "x", "parameters": {"threshold": 1e999}}', 422, "parameters.threshold.float: Input should be a"),
        ({"inputs": "x", "parameters": {"threshold": 2}}, 422, "between 0 and 1, not 2"),
        ({"inputs": [["x"]]}, 422, "inputs"),
        (b"NaN", 422, "valid dictionary"),
        ({"inputs": "x", "parameters": {"threshold": {"DOG": 0.5}}}, 422, "unknown label 'DOG'"),
        ({"inputs": "x", "parameters": {"labels": ["DOG"]}}, 422, "labels names 'DOG'"),
        ({"inputs": "x", "parameters": {"overlap": "some"}}, 422, "parameters.overlap"),
        ({"inputs": ["x"] * 9}, 413, "9 texts, and one request may have 8."),
        ({"inputs": ["x" * 10_001] * 2}, 413, "20,002 characters, and one request may have 20,000."),
        ({"inputs": "word " * 1_000_000}, 413, "larger than the 50,000 bytes"),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_has_a_proper_status_and_a_sentence(server, body, status, told):
    got, content = server.predict(body)
    assert (got, list(content)) == (status, ["error"]) and told in content["error"]
    assert server.predict({"inputs": "London"})[0] == 200


def test_a_body_without_a_length_is_read_no_further_than_it_may_be(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        sent = 0
        try:
            while sent < 50_000_000:
                client.sendall(b"2710\r\n" + b"x" * 10_000 + b"\r\n")
                sent += 10_000
                client.setblocking(False)
                try:
                    answer = client.recv(100)
                    break
                except BlockingIOError:
                    client.setblocking(True)
        except (BrokenPipeError, ConnectionResetError):
            answer = client.recv(100)
    # What stands in the system's buffers was sent and not read; on a busy machine that may be many megabytes.
    assert answer.startswith(b"HTTP/1.1 413") and sent < 40_000_000


def test_unknown_paths_and_methods_are_json_too(server):
    assert server.predict(None, "GET", "/nowhere") == (404, {"error": "Not Found"})
    assert server.predict(None, "GET", "/predict") == (405, {"error": "Method Not Allowed"})


def test_health_metrics_and_the_schema(server):
    assert server.predict(None, "GET", "/health") == (200, {"status": "ok", "model": "tiny"})
    before = server.predict(None, "GET", "/metrics")[1]
    server.predict({"inputs": ["London", "x"]})
    after = server.predict(None, "GET", "/metrics")[1]

    def value(text, name):
        return float(next(line for line in text.splitlines() if line.startswith(name)).rsplit(" ", 1)[1])

    assert value(after, "hf_spanner_texts_total") - value(before, "hf_spanner_texts_total") == 2
    assert value(after, 'hf_spanner_requests_total{status="200"}') >= 1
    buckets = [float(line.rsplit(" ", 1)[1]) for line in after.splitlines() if "_bucket" in line]
    assert buckets == sorted(buckets) and buckets[-1] == value(after, "hf_spanner_request_seconds_count")
    status, schema = server.predict(None, "GET", "/openapi.json")
    body = schema["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert status == 200 and {"inputs", "texts", "parameters"} == set(body["properties"])
    assert "$defs" not in json.dumps(schema) and "threshold" in json.dumps(body)


def test_requests_at_the_same_time_are_read_together_and_answered_each_with_its_own(server):
    texts = [f"{'New York ' * (i % 7)}London {i}" for i in range(64)]
    before = server.server.config.loaded_app  # the application, wrapped or not
    assert before is not None
    alone = [server.predict({"inputs": text})[1] for text in texts[:7]]
    batches = server.predict(None, "GET", "/metrics")[1]
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda text: server.predict({"inputs": text}), texts))
    assert [status for status, _ in answers] == [200] * 64
    for text, (_, entities) in zip(texts, answers):
        assert all(text[e["start"] : e["end"]] == e["word"] for e in entities)
    for one, (_, entities) in zip(alone, answers):
        assert [e["word"] for e in one] == [e["word"] for e in entities]
    name = "hf_spanner_batches_total "
    after = server.predict(None, "GET", "/metrics")[1]
    count = [int(text.split(f"\n{name}")[1].split("\n")[0]) for text in (batches, after)]
    assert count[1] - count[0] < 64


def test_a_client_that_is_too_slow_is_told_so_or_left(folder):
    running = Running(folder, seconds=0.5)
    try:
        for begun in (b"", b"POST /predict HT", b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Le"):
            with socket.create_connection(("127.0.0.1", running.port), timeout=20) as client:
                client.sendall(begun)
                assert client.recv(100) == b"", "closed without a word: there is no request yet"
        with socket.create_connection(("127.0.0.1", running.port), timeout=20) as client:
            client.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            assert client.recv(100).startswith(b"HTTP/1.1 408")
        assert running.predict({"inputs": "London"})[0] == 200
    finally:
        running.stop()


def test_more_than_may_wait_is_refused_until_there_is_room(folder):
    running = Running(folder, waiting=4, seconds=2)
    go_on = threading.Event()
    read = running.predictor.read

    def slow(texts, **options):
        go_on.wait(20)
        return read(texts, **options)

    running.predictor.read = slow
    try:
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(running.request, {"inputs": "London"}) for _ in range(8)]
            refused = [future.result() for future in asked]
        told = sorted(content["error"] for _, _, content in refused)
        assert {status for status, _, _ in refused} == {503} and all(h["Retry-After"] for _, h, _ in refused)
        assert told[-1].startswith("no answer within 2 seconds") and told[0].startswith("4 texts are waiting already")
        go_on.set()
        assert running.predict({"inputs": "London"})[0] == 200
    finally:
        go_on.set()
        running.stop()


def test_one_bad_request_costs_those_that_are_read_with_it_nothing():
    import asyncio

    def read(texts, parameters):
        if "bad" in texts:
            raise ZeroDivisionError
        return [text.upper() for text in texts]

    async def ask():
        batcher = Batcher(read, window=0.05)
        answers = await asyncio.gather(
            *(batcher.submit([text], {}) for text in ("a", "bad", "b")), return_exceptions=True
        )
        assert batcher.waiting == 0
        batcher.stop()
        return answers

    first, error, last = asyncio.run(ask())
    assert (first, last) == (["A"], ["B"]) and isinstance(error, ZeroDivisionError)


def test_memory_stays_flat_under_bodies_that_are_too_large(server):
    if not Path("/proc/self/statm").exists():
        pytest.skip("the system does not say how much memory a process has")

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    body = json.dumps({"inputs": "word " * 1_000_000}).encode()
    server.predict(body)
    before = resident()
    assert {server.predict(body)[0] for _ in range(20)} == {413}
    assert resident() - before < 3 * len(body)

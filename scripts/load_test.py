"""Load on a server that `hf-spanner serve` runs: errors, how long answers take, and how many texts a second.

    hf-spanner serve --port 8000 &
    python scripts/load_test.py http://127.0.0.1:8000 --texts sentences.txt --clients 64 --seconds 30
    python scripts/load_test.py --model default --texts sentences.txt --clients 64 --seconds 30

With --model the server is started here, and its texts per second are shown beside those of the offline pipeline on the
same texts with as many threads. Every client asks for one text (or --per-request) and waits for its answer before it
asks again. The clients need a core of their own, or they are what is measured.
"""

import argparse
import asyncio
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit


async def client(host: str, port: int, bodies, until: float, took: list[float], errors: list[str]) -> None:
    """Ask, one request after the other on one connection, until the time is up."""
    reader = writer = None
    while time.monotonic() < until:
        body = next(bodies)
        begun = time.monotonic()
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection(host, port)
            writer.write(
                b"POST /predict HTTP/1.1\r\nHost: %b\r\nContent-Length: %d\r\n\r\n%b"
                % (host.encode(), len(body), body)
            )
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
            length = next(
                int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
            )
            answer = await reader.readexactly(length)
            if not head.startswith(b"HTTP/1.1 200"):
                errors.append(f"{head[9:12].decode()}: {answer.decode()[:100]}")
            else:
                json.loads(answer)
                took.append(time.monotonic() - begun)
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, ValueError, StopIteration) as error:
            errors.append(f"{type(error).__name__}: {error}")
            if writer is not None:
                writer.close()
            writer = None
    if writer is not None:
        writer.close()


async def load(host: str, port: int, texts: list[str], clients: int, seconds: float, per_request: int) -> dict:
    """Figures of `clients` at once for so many seconds."""
    groups = [texts[i : i + per_request] for i in range(0, len(texts), per_request)]
    bodies = itertools.cycle([json.dumps({"inputs": group}).encode() for group in groups])
    took: list[float] = []
    errors: list[str] = []
    begun = time.monotonic()
    await asyncio.gather(*(client(host, port, bodies, begun + seconds, took, errors) for _ in range(clients)))
    spent = time.monotonic() - begun
    cuts = statistics.quantiles(took, n=100) if len(took) > 1 else [float("nan")] * 99
    return {
        "clients": clients,
        "answers": len(took),
        "errors": len(errors),
        "p50 (ms)": round(1000 * cuts[49], 1),
        "p99 (ms)": round(1000 * cuts[98], 1),
        "texts per second": round(len(took) * per_request / spent, 1),
        "first error": errors[0] if errors else None,
    }


def offline(model: str, texts: list[str], seconds: float) -> tuple[float, float]:
    """Texts per second, and per CPU second, of the pipeline on the same texts, repeated for so long."""
    import hf_spanner

    predictor = hf_spanner.Predictor(model, device="cpu")
    predictor.read(texts[:64])
    begun, cpu, count = time.monotonic(), time.process_time(), 0
    while time.monotonic() - begun < seconds:
        predictor.read(texts)
        count += len(texts)
    return count / (time.monotonic() - begun), count / (time.process_time() - cpu)


def start(model: str) -> tuple[subprocess.Popen, int]:
    """A server on a free port, once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "hf_spanner.cli",
        "serve",
        "--model",
        model,
        "--port",
        str(port),
        "--device",
        "cpu",
    ]
    server = subprocess.Popen(command)
    while server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return server, port
        except OSError:
            time.sleep(0.2)
    raise SystemExit("the server did not start")


def memory(pid: int) -> float | None:
    """MiB that a process has had at most, where the system says."""
    status = Path(f"/proc/{pid}/status")
    return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024 if status.exists() else None


def cpu_seconds(pid: int) -> float:
    """What a process has used of the CPU so far; 0 where the system does not say."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return 0.0
    used = stat.read_text().rpartition(") ")[2].split()[11:13]
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", nargs="?", help="http://HOST:PORT of a server that runs")
    parser.add_argument("--model", help="start a server with this model, and compare it with the offline pipeline")
    parser.add_argument("--texts", required=True, help="a file, each line a text")
    parser.add_argument("--first", type=int, default=2048, help="so many of its lines")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--per-request", type=int, default=1)
    args = parser.parse_args()
    if (args.address is None) == (args.model is None):
        parser.error("give the address of a server, or --model to start one.")
    texts = [line for line in Path(args.texts).read_text(encoding="utf-8").splitlines() if line.strip()][: args.first]
    given = (args.clients, args.seconds, args.per_request)
    if args.address is not None:
        place = urlsplit(args.address)
        figures = asyncio.run(load(place.hostname or "127.0.0.1", place.port or 80, texts, *given))
    else:
        server, port = start(args.model)
        try:
            asyncio.run(load("127.0.0.1", port, texts, args.clients, 3, args.per_request))  # warm
            before, cpu = memory(server.pid), cpu_seconds(server.pid)
            figures = asyncio.run(load("127.0.0.1", port, texts, *given))
            spent = cpu_seconds(server.pid) - cpu
            figures |= {"MiB before": before, "MiB at most": memory(server.pid)}
            figures["texts per CPU second"] = (
                round(figures["answers"] * args.per_request / spent, 1) if spent else None
            )
        finally:
            server.terminate()
            server.wait()
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        by_clock, by_cpu = offline(args.model, texts, min(args.seconds, 30))
        figures |= {"offline texts per second": round(by_clock, 1), "offline texts per CPU second": round(by_cpu, 1)}
        figures["share of offline"] = round(figures["texts per second"] / by_clock, 3)
        if figures["texts per CPU second"]:  # what can be compared when others use the machine, too
            figures["share of offline by CPU time"] = round(figures["texts per CPU second"] / by_cpu, 3)
    print("\n".join(f"{name}: {value}" for name, value in figures.items()))
    return 1 if figures["errors"] else 0


if __name__ == "__main__":
    raise SystemExit(main())

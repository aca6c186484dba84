"""Bulk prediction itself: blocks of the input → predictors, here or in processes of their own → parts → the output."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from itertools import islice
from multiprocessing.connection import wait as wait_for
from typing import Any, NamedTuple

import torch

from ..lock import locked
from .parts import TEXTS, Block, Parts, blocks, count_lines
from .progress import Progress
from .reading import Reading, read_records
from .sources import Source, Unreadable

HELD = 2  # blocks that wait for each worker


class Summary(NamedTuple):
    """What a run has done.

    Attributes:
        texts: all records of the input; None if the output was complete already.
        aside: of these, how many were set aside.
        before: of these, how many an earlier run had read.
        speed: texts per second of this run.
    """

    texts: int | None
    aside: int
    before: int = 0
    speed: float = 0.0


def predict_bulk(
    source: Source,
    output: str,
    reading: Reading,
    workers: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = False,
    part: int = TEXTS,
) -> Summary:
    """Read all of a source and write what is found to `output` (.jsonl or .parquet), in the order of the input.

    What is done stands in parts beside the output until all of it is there, so that a run that was killed goes on with
    `resume=True` and ends in the same bytes. Lines that cannot be read go to a file of their own, `Parts.aside`.
    Several processes that torchrun or accelerate started divide the parts among themselves; the first one joins them.
    A part has up to `part` texts: the more, the less padding, the more is read again after a kill.
    """
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if workers < 1:
        raise ValueError(f"--workers {workers} must be at least 1.")
    if world > 1 and workers > 1:
        raise ValueError(f"--workers {workers} is for one process, and {world} were launched: leave it out.")
    parts = Parts(output)
    if resume and parts.is_joined():
        if rank == 0:
            parts.remove()  # what a kill has left of it
        return Summary(None, count_lines(parts.aside))
    parts.check(resume, overwrite)
    _check_columns(source, reading)
    lock = locked(parts.folder, "written", "name another --output") if rank == 0 else nullcontext()
    with _launched(world) as meet, lock:
        if rank == 0:
            parts.begin({**reading.settings(), "texts of a part": part}, resume)
        meet()
        finished = parts.finished()
        meet()  # nobody writes before everybody has looked
        try:
            with Progress(source.total, progress and rank == 0, world) as told:
                texts = _read_all(source, parts, finished, reading, told, workers, rank, world, part)
        except Exception:
            if world == 1 and not parts.finished():  # nothing came of it
                parts.remove()
            raise
        meet()
        aside = parts.join() if rank == 0 else 0
        if rank == 0:
            parts.remove()
    return Summary(texts, aside, told.before, told.speed)


def _check_columns(source: Source, reading: Reading) -> None:
    """Refuse an input whose first row has no text at all, or has the column that is to be added."""
    for record in islice(source, 1):
        try:
            row = record.row()
        except Unreadable:
            return
        if reading.text_column not in row:
            there = ", ".join(map(repr, row)) or "nothing"
            raise ValueError(
                f"{source.name} has no column {reading.text_column!r}, only {there}: name the one with the texts, "
                "--text-column."
            )
        if reading.entities_column in row:
            raise ValueError(
                f"{source.name} has a column {reading.entities_column!r} already: name another for what is found, "
                "--entities-column."
            )


def _read_all(
    source: Source,
    parts: Parts,
    finished: dict[int, str],
    reading: Reading,
    told: Progress,
    workers: int,
    rank: int,
    world: int,
    part: int,
) -> int:
    """Read all blocks that are this process's and not finished; returns how many records there are in all."""
    texts, left = 0, dict(finished)

    def waiting() -> Iterator[Block]:
        nonlocal texts
        for block in blocks(source, part):
            texts += len(block.records)
            told.expect(texts, block.done)
            if block.number in left:
                if left.pop(block.number) != block.digest:
                    first, last = block.records[0], block.records[-1]
                    raise ValueError(
                        f"{source.name} is not what {parts.folder} was begun with: it differs between line "
                        f"{first.number} of {first.file} and line {last.number} of {last.file}; name that input, or "
                        "begin anew with --overwrite."
                    )
                told.before += len(block.records)
            elif block.number % world == rank:
                yield block

    if workers == 1:
        own = reading if world == 1 else _on_own_device(reading, int(os.environ.get("LOCAL_RANK", rank)))
        read = _reader(parts, own, source.schema, told.tick)
        for block in waiting():
            read(block)
    else:
        _read_in_processes(waiting(), parts, reading, source, told, workers)
    if left:
        raise ValueError(
            f"{source.name} is not what {parts.folder} was begun with: it ends earlier; name that input, or begin "
            "anew with --overwrite."
        )
    return texts


def _reader(parts: Parts, reading: Reading, schema: Any, tick: Callable[[int], None]) -> Callable[[Block], None]:
    """What makes a part of a block; the model is loaded when the first block comes."""
    predictor = None

    def read(block: Block) -> None:
        nonlocal predictor
        predictor = predictor or reading.predictor()
        rows, bad = read_records(predictor, reading, block.records, parts.format == "parquet", tick)
        parts.write(block, rows, bad, predictor.layout._replace(schema=schema))

    return read


# ----------------------------------------------------------------------------------------------------------- processes


_read: Callable[[Block], None]  # of a worker


def _read_in_processes(
    waiting: Iterable[Block], parts: Parts, reading: Reading, source: Source, told: Progress, workers: int
) -> None:
    """Give the blocks to workers, each with its share of the threads; a few blocks wait for each."""
    context = multiprocessing.get_context("spawn")
    number, count = context.Value("i", 0), context.Value("q", 0)
    threads = max(1, torch.get_num_threads() // workers)
    with ProcessPoolExecutor(
        workers, context, initializer=_begin_worker, initargs=(parts, reading, source.schema, threads, number, count)
    ) as pool:
        futures: set[Future[None]] = set()
        try:
            for block in waiting:
                futures.add(pool.submit(_work, block))
                while len(futures) >= HELD * workers:
                    futures = _some_done(futures, told, count)
            while futures:
                futures = _some_done(futures, told, count)
        except BrokenProcessPool:
            raise ChildProcessError(
                "A worker was killed, perhaps for want of memory: take fewer --workers or a smaller --batch-size, and "
                "go on with --resume."
            ) from None
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _some_done(futures: set[Future[None]], told: Progress, count: Any) -> set[Future[None]]:
    """Wait a moment; the blocks that are still read."""
    done, futures = wait(futures, timeout=1, return_when=FIRST_COMPLETED)
    told.tick(count.value - told.read)
    for future in done:
        future.result()
    return futures


def _begin_worker(parts: Parts, reading: Reading, schema: Any, threads: int, number: Any, count: Any) -> None:
    global _read
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    with number.get_lock():
        mine, number.value = number.value, number.value + 1

    def tick(texts: int) -> None:
        with count.get_lock():
            count.value += texts

    _read = _reader(parts, _on_own_device(reading, mine), schema, tick)


def _work(block: Block) -> None:
    _read(block)


def _end_with_parent() -> None:
    """A parent that is killed tells nobody: its workers would wait for blocks for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _on_own_device(reading: Reading, number: int) -> Reading:
    """Of several GPUs each process has one."""
    there = torch.accelerator.device_count() if torch.accelerator.is_available() else 0
    if reading.device != "auto" or there < 2:
        return reading
    kind = torch.accelerator.current_accelerator()
    return dataclasses.replace(reading, device=f"{kind}:{number % there}")


# ---------------------------------------------------------------------------------------------- launched by torchrun


@contextmanager
def _launched(world: int) -> Iterator[Callable[[], None]]:
    """How processes that were launched together wait for each other: each calls what this gives."""
    if world == 1:
        yield lambda: None
        return
    import torch.distributed as dist

    mine = not dist.is_initialized()
    # Gloo, whatever the device: nothing but waiting is asked of it. A part may take longer than its half an hour.
    group = dist.init_process_group("gloo", timeout=timedelta(days=30)) if mine else None
    try:
        yield lambda: dist.barrier(group)
    finally:
        if mine:
            dist.destroy_process_group()

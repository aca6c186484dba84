"""mypy over the package as it is installed, with `modeling/` inside it, and over a user's script (`make quality`).

python tests/typing/check.py [more of mypy's arguments]
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def installed(folder: Path) -> Path:
    """A folder in which `hf_spanner` looks as it does once installed; made of links."""
    shutil.rmtree(folder, ignore_errors=True)
    package = folder / "hf_spanner"
    package.mkdir(parents=True)
    for entry in (ROOT / "hf_spanner").iterdir():
        (package / entry.name).symlink_to(entry)
    (package / "modeling").symlink_to(ROOT / "modeling")
    (folder / "user.py").symlink_to(ROOT / "tests" / "typing" / "user.py")
    return folder


def main(arguments: list[str]) -> int:
    folder = installed(ROOT / "build" / "typing")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), *arguments]
    environment = {**os.environ, "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache")}
    return subprocess.run([*command, "-p", "hf_spanner", "-m", "user"], cwd=folder, env=environment).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""The oldest Python that setup.py promises can read every module."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted([*(ROOT / "hf_spanner").rglob("*.py"), *(ROOT / "modeling").glob("*.py")])
# What the standard library gained after Python 3.10, as far as anybody may be tempted.
YOUNGER = {
    "typing": set(
        "NotRequired Required Self Never LiteralString Unpack TypeVarTuple assert_type assert_never reveal_type "
        "dataclass_transform override get_overloads clear_overloads TypeAliasType ReadOnly TypeIs NoDefault "
        "get_protocol_members is_protocol evaluate_forward_ref".split()
    ),
    "typing_extensions": {"*"},  # any name: the package does not ask for it to be installed
    "enum": {"StrEnum", "ReprEnum", "EnumCheck", "verify", "member", "nonmember", "property"},
    "datetime": {"UTC"},
    "collections.abc": {"Buffer"},
    "contextlib": {"chdir"},
    "hashlib": {"file_digest"},
    "itertools": {"batched"},
    "math": {"cbrt", "exp2", "sumprod"},
    "tomllib": {"*"},
    "warnings": {"deprecated"},
}


def test_python_3_10_is_the_oldest():
    assert re.search(r'python_requires=">=3\.10"', (ROOT / "setup.py").read_text()), "then YOUNGER is another list"


def younger(tree: ast.AST) -> list[tuple[int, str]]:
    """The lines and names of what Python 3.10 does not have, imported or read off a module under whatever name."""
    found, modules = [], {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name: alias.name for alias in node.names}
            found += [(node.lineno, alias.name) for alias in node.names if "*" in YOUNGER.get(alias.name, ())]
        elif isinstance(node, ast.ImportFrom) and node.module in YOUNGER and not node.level:
            names = YOUNGER[node.module]
            found += [(node.lineno, alias.name) for alias in node.names if "*" in names or alias.name in names]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in YOUNGER.get(modules.get(ast.unparse(node.value), ""), ()):
            found.append((node.lineno, ast.unparse(node)))
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_needs_a_younger_python_than_3_10(path):
    assert not younger(ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 10)))


@pytest.mark.parametrize(
    "code",
    [
        "from typing import Any, Self",
        "import typing\nx: typing.NotRequired[int]",
        "import typing as t\nt.assert_never",
        "import tomllib",
        "from typing_extensions import Self",
        "import collections.abc\ncollections.abc.Buffer",
    ],
)
def test_what_is_younger_is_seen(code):
    assert younger(ast.parse(code))


def test_what_is_old_enough_passes():
    code = "import typing\nfrom typing import Any\nfrom .typing import Self\ntyping.NamedTuple\nself.Self"
    assert not younger(ast.parse(code))

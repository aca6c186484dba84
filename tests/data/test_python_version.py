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
        "get_protocol_members is_protocol".split()
    ),
    "enum": {"StrEnum", "ReprEnum", "EnumCheck", "verify", "member", "nonmember", "property"},
    "datetime": {"UTC"},
    "contextlib": {"chdir"},
    "itertools": {"batched"},
    "tomllib": set(),
}


def test_python_3_10_is_the_oldest():
    assert re.search(r'python_requires=">=3\.10"', (ROOT / "setup.py").read_text()), "then YOUNGER is another list"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_needs_a_younger_python_than_3_10(path):
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 10))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in YOUNGER and not node.level:
            names = {alias.name for alias in node.names}
            assert node.module != "tomllib" and not names & YOUNGER[node.module], f"{path}:{node.lineno}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert node.attr not in YOUNGER.get(node.value.id, ()), f"{path}:{node.lineno}"
        if isinstance(node, ast.Import):
            assert "tomllib" not in {alias.name for alias in node.names}, f"{path}:{node.lineno}"

"""The Python blocks of the pages run as they stand, page by page, and what a comment says of a result is so."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = [
    path
    for path in [ROOT / "README.md", ROOT / "bindings/python/README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if "\n```python\n" in path.read_text(encoding="utf-8")
]


def blocks(path: Path) -> list[tuple[int, str]]:
    """Line and text of each block, lines in front kept as empty ones for tracebacks."""
    found: list[tuple[int, str]] = []
    inside = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            inside = not inside and line == "```python"
            if inside:
                found.append((number, "\n" * number))
        elif inside:
            start, text = found[-1]
            found[-1] = (start, text + line + "\n")
    return found


def test_pages_are_found() -> None:
    assert {"README.md", "PYTHON.md", "COOKBOOK.md"} <= {path.name for path in PAGES}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for _, text in blocks(path):
        exec(compile(text, str(path), "exec"), names)
        lines = text.splitlines()
        for statement in ast.parse(text).body:
            # An expression alone on its line: what stands behind it, unless it is prose, is its value.
            _, _, comment = lines[statement.lineno - 1].partition("  # ")
            if isinstance(statement, ast.Expr) and comment.startswith("["):
                value = repr(eval(ast.unparse(statement.value), names))
                start, _, _ = comment.partition("...")
                assert value.startswith(start), f"{path}:{statement.lineno}: {value}"

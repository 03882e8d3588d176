"""Run the notebooks in docs/ and write what their cells show. ``page`` makes one a page of the site."""

from __future__ import annotations

import ast
import asyncio
import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs").glob("*.ipynb"))


def read(path: Path) -> dict[str, Any]:
    """Return a notebook."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def executed(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Run the cells of code in order, within an event loop as Jupyter does; return what each shows."""
    names: dict[str, Any] = {}

    async def run() -> list[list[dict[str, Any]]]:
        return [_shown("".join(cell["source"]), names) for cell in _code(notebook)]

    return asyncio.run(run())


def _code(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _shown(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell; return its printed text, and its last expression as text and HTML."""
    tree, printed, value = ast.parse(source), io.StringIO(), None
    last = tree.body[-1]
    with redirect_stdout(printed):
        if isinstance(last, ast.Expr):
            tree.body.pop()
        exec(compile(tree, "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    found: list[dict[str, Any]] = []
    if text := printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = [value._repr_html_()]
        found.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return found


def page(notebook: dict[str, Any]) -> str:
    """Return a notebook as Markdown: cells of code, and what they show, as HTML where there is HTML."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            shown = output.get("data", {"text/plain": output.get("text", ())})
            html = "".join(shown.get("text/html", ()))
            parts.append(html or f"```text\n{''.join(shown['text/plain']).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    for path in NOTEBOOKS:
        whole = read(path)
        for cell, shown in zip(_code(whole), executed(whole), strict=True):
            cell["outputs"] = shown
        path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The ten cells with which docs/python.md begins, run one after the other as a notebook does, and the same ones in examples/heap.ipynb, which has what they show.
--update writes the notebook anew.

A cell whose package is not installed is left out, and named. The notebook has pictures: polars' and xheap's tables as HTML, and a chart as SVG."""
import ast
import contextlib
import importlib.util
import io
import json
import os
import re
import sys

import packages
from package import SOURCE, expect, finish, same, unpack

unpack()
packages.use()
import xheap  # noqa: E402

PAGE, NOTEBOOK = SOURCE / "docs/python.md", SOURCE / "examples/heap.ipynb"
CELLS = 10
NEEDED = ("polars", "duckdb")
TITLE = "# A heap trace in a notebook\n\n`pip install ./python polars duckdb`, and xheap itself. [docs/python.md](../docs/python.md) describes the package."
#: The last cell of the notebook: live bytes over time, as a chart that needs no package.
CHART = '''from IPython.display import SVG

births = [(row.birth_ns, row.size) for row in t.allocations(columns=["birth_ns", "size"]) if row.birth_ns is not None]
ends = [(row.end_ns, -row.size) for row in t.allocations(columns=["end_ns", "end_kind", "size"]) if row.end_kind in ("free", "realloc")]
live, points = 0, []
for time, change in sorted(births + ends):
    live += change
    points.append((time, live))
last, most = points[-1][0] or 1, max(bytes for _, bytes in points)
line = " ".join(f"{time / last * 600:.1f},{190 - bytes / most * 180:.1f}" for time, bytes in points[:: len(points) // 600 + 1])
SVG(f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="220"><text x="4" y="14" font-size="12">{most:,} bytes</text>'
    f'<text x="520" y="210" font-size="12">{last / 1e6:,.1f} ms</text><polyline points="{line}" fill="none" stroke="steelblue"/></svg>')'''


def cells_of(page):
    return re.findall(r"^```python\n(.*?)\n```$", page.read_text(), re.S | re.M)


def run_cell(cell, names):
    """What the cell prints, and the value of its last line if that is an expression."""
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(tree, "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None
    return said.getvalue(), value


class Drawn:
    """In place of IPython's, which the test does without."""

    def __init__(self, text):
        self.text = text

    def _repr_svg_(self):
        return self.text


def shown(value):
    """As a notebook keeps it."""
    kinds = {kind: getattr(value, method)() for kind, method in (("text/html", "_repr_html_"), ("image/svg+xml", "_repr_svg_")) if hasattr(value, method)}
    return {**{kind: text.splitlines(True) for kind, text in kinds.items() if text}, "text/plain": ["a chart"] if "image/svg+xml" in kinds else str(value).splitlines(True)}


def missing_packages(cell):
    return [name for name in NEEDED if (name in cell or name == "duckdb" and ".sql(" in cell) and not importlib.util.find_spec(name)]


def run_all(cells):
    """The outputs of each cell, None for one that cannot run."""
    names, outputs = {}, []
    for cell in cells:
        if missing := missing_packages(cell):
            print(f"not run, for there is no {' and '.join(missing)}: {cell.splitlines()[0]}")
            outputs.append(None)
            continue
        if "IPython" in cell:
            cell = cell.replace("from IPython.display import SVG", "")
            names["SVG"] = Drawn
        said, value = run_cell(cell, names)
        outputs.append([*([{"output_type": "stream", "name": "stdout", "text": said.splitlines(True)}] if said else []),
                        *([{"output_type": "execute_result", "execution_count": len(outputs) + 1, "metadata": {}, "data": shown(value)}] if value is not None else [])])
    return outputs


def notebook(cells, outputs):
    code = [{"cell_type": "code", "id": f"cell-{place}", "execution_count": place, "metadata": {}, "outputs": output, "source": cell.splitlines(True)}
            for place, (cell, output) in enumerate(zip(cells, outputs), 1)]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}, "language_info": {"name": "python"}}
    title = {"cell_type": "markdown", "id": "title", "metadata": {}, "source": TITLE.splitlines(True)}
    return {"cells": [title, *code], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


def main():
    text = PAGE.read_text()
    cells = cells_of(PAGE)
    same("cells of the page", len(cells), CELLS)
    expect(text.index("```python") < text.index("\n## "), "the page does not begin with the cells")
    cells.append(CHART)
    outputs = run_all(cells)
    for cell, output in zip(cells, outputs):
        is_statement = not isinstance(ast.parse(cell).body[-1], ast.Expr)
        expect(output is None or is_statement or output, f"a cell shows nothing: {cell}")
    expect(os.path.getsize("out.pb.gz") > 100, "nothing was exported")
    if sys.argv[1:] == ["--update"]:
        expect(None not in outputs, "not all cells could run")
        # The machine on which it was made is nobody's business.
        made = json.dumps(notebook(cells, outputs), indent=1, ensure_ascii=False).replace(os.getcwd(), "/home/user")
        host = xheap.open("out.xht").info.host
        made = re.sub(r"(/\S+ )?[^\s\"]*notebook\.py --update", "python3 notebook.py", made).replace(host, "notebook Linux x86_64".ljust(len(host)))
        NOTEBOOK.write_text(made + "\n")
    kept = json.loads(NOTEBOOK.read_text())
    same("cells of the notebook", ["".join(cell["source"]) for cell in kept["cells"] if cell["cell_type"] == "code"], cells)
    expect(all(cell["outputs"] or "record" in "".join(cell["source"]) for cell in kept["cells"] if cell["cell_type"] == "code"), "the notebook lacks what cells show")
    expect("image/svg+xml" in json.dumps(kept) and "text/html" in json.dumps(kept), "the notebook has no pictures")
    if importlib.util.find_spec("nbformat"):
        import nbformat
        nbformat.validate(nbformat.from_dict(kept))
    finish()


main()

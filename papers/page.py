"""`docs/reproduction.md` and its pictures, of what `papers/results` holds."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from bench.columns import ROOT
from papers import printed
from papers.outcome import RESULTS, VERDICTS, Row, read
from papers.report import digits

PAGE = ROOT / "docs" / "reproduction.md"
# The text around the tables.
HEAD = (ROOT / "papers" / "page_head.md").read_text("utf-8")
FOOT = (ROOT / "papers" / "page_foot.md").read_text("utf-8")


def made(folder: Path) -> str:
    """The page."""
    found = {place.item: read(folder, place.item) for place in printed.INDEX}
    known = [data for data in found.values() if data is not None]
    facts = {
        "dates": " and ".join(sorted({data["date"] for data in known})),
        "machines": "; ".join(sorted({data["machine"] for data in known})),
        "commits": ", ".join(f"`{c}`" for c in sorted({data["commit"] for data in known})),
        "minutes": f"{sum(data['seconds'] for data in known) / 60.0:.0f}",
    }
    text = HEAD
    for name, value in facts.items():
        text = text.replace(f"{{{name}}}", value)
    parts = [text, "## Index\n", _index(found)]
    for document, title in printed.DOCUMENTS.items():
        parts.append(f"## {_heading(document)}\n\n{title}.\n")
        items = dict.fromkeys(p.item for p in printed.INDEX if p.document == document)
        parts += [_section(item, found[item]) for item in items]
    parts.append(FOOT.replace("{tuned_trees}", anchor("joint_trees_missed")))
    return "\n".join(parts)


def _heading(document: str) -> str:
    return document[0].upper() + document[1:]


def _places(item: str) -> str:
    return "; ".join(f"{p.where}: {p.what}" for p in printed.INDEX if p.item == item)


def _index(found: dict[str, dict[str, Any] | None]) -> str:
    rows = []
    for place in printed.INDEX:
        data = found[place.item]
        counts = Counter(row.verdict for row in data["rows"]) if data else Counter()
        verdict = ", ".join(f"{v} {counts[v]}" for v in VERDICTS if counts[v]) or "not run"
        rows.append(
            (place.document, place.where, f"[{place.what}](#{anchor(place.item)})", verdict)
        )
    return _table(("document", "where", "what", "rows"), rows)


def anchor(item: str) -> str:
    """What the heading of an item is called in links."""
    return re.sub(r"[^\w -]", "", _places(item).lower()).replace(" ", "-")


def _section(item: str, data: dict[str, Any] | None) -> str:
    parts = [f"### {_places(item)}\n"]
    if data is None:
        return "\n".join([*parts, "Not run.\n"])
    parts.append(f"Trials (`--only {item}`): {data['trials']}.\n")
    if item in PICTURES:
        parts.append(
            f"```{{image}} _generated/reproduction/{item}.svg\n:alt: {_places(item)}\n"
            ":class: figure dark-light\n:width: 100%\n```\n"
        )
    parts.append(
        _table(
            ("row", "the paper", "here", "apart", "verdict"),
            [
                (row.name, paper_of(row), _ours(row), _apart(row), _verdict(row))
                for row in data["rows"]
            ],
        )
    )
    for table in data["tables"]:
        parts.append(f"{table['title']}:\n")
        parts.append(_table([each or " " for each in table["head"]], table["rows"]))
    return "\n".join(parts)


def paper_of(row: Row) -> str:
    """What a row is compared with."""
    number = "" if row.paper is None else _number(row.paper, row.paper_se)
    return f"{number} ({row.says})" if number and row.says else number or row.says


def _number(value: float, se: float, known: float = 0.0) -> str:
    """With the digits that an error leaves, its own or the one that it is compared to."""
    text, error = digits(value), se or known
    if 0.0 < error < 0.1 and abs(value) >= 99.5:
        text = f"{value:,.{-math.floor(math.log10(error))}f}"
    return f"{text} ± {digits(se)}" if se else text


def _ours(row: Row) -> str:
    return "" if row.ours is None else _number(row.ours, row.se, row.paper_se)


def _apart(row: Row) -> str:
    apart = row.apart
    known = apart is not None and math.isfinite(apart) and not row.timed
    return f"{apart:+.1f}" if known else ""


def _verdict(row: Row) -> str:
    return f"{row.verdict}: {row.why}" if row.why and row.verdict != "reproduced" else row.verdict


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(list(head))]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


# --- Pictures -------------------------------------------------------------------------------------

INK = "#757c87"


def _figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, Any]:
    figure = Figure(figsize=size, layout="constrained")
    figure.patch.set_alpha(0.0)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for each in axes:
        each.patch.set_alpha(0.0)
        each.tick_params(colors=INK, which="both")
        each.title.set_color(INK)
        each.xaxis.label.set_color(INK)
        each.yaxis.label.set_color(INK)
        for spine in each.spines.values():
            spine.set_color(INK)
    return figure, axes


def _legend(axes: Any) -> None:
    lines, labels = axes.get_legend_handles_labels()
    below = dict(loc="outside lower center", ncols=4, fontsize="x-small", frameon=False)
    axes.figure.legend(lines, labels, labelcolor=INK, **below)


def _histograms(curves: dict[str, Any]) -> Figure:
    histograms = curves["histograms"]
    many = len(histograms)
    columns = min(many, 3 if many > 4 else 2)
    figure, axes = _figure(-(-many // columns), columns, (8.0, 2.2 * -(-many // columns) + 0.4))
    for each, (name, histogram) in zip(axes, histograms.items(), strict=False):
        each.stairs(histogram["counts"], histogram["edges"], fill=True)
        each.set_title(name, fontsize="small")
    return figure


def _by_m(curves: dict[str, Any], label: str) -> Figure:
    figure, axes = _figure(2, 2, (8.0, 6.4))
    for each, (name, sides) in zip(axes, curves.items(), strict=False):
        for k, (side, by) in enumerate(sides.items()):
            style = "--" if "published" in side else "-"
            each.plot(
                [int(m) for m in by], list(by.values()), style, color=f"C{k // 2}", label=side
            )
        each.set_yscale("log", nonpositive="mask")
        each.set_title(name, fontsize="small")
        each.set(xlabel="m", ylabel=label)
    _legend(axes[0])
    return figure


def _times(curves: dict[str, Any]) -> Figure:
    figure, axes = _figure(1, 1, (6.4, 3.6))
    for k, (side, by) in enumerate(curves["times"].items()):
        style = "--" if "published" in side else "-"
        axes[0].plot([int(m) for m in by], list(by.values()), style, color=f"C{k // 2}", label=side)
    axes[0].set(yscale="log", xlabel="m", ylabel="seconds, n = 1,000")
    _legend(axes[0])
    return figure


def _smoothness(curves: dict[str, Any]) -> Figure:
    figure, axes = _figure(1, 1, (6.4, 3.6))
    for m, t in curves["t"].items():
        levels = np.arange(1, int(m) + 1) / (int(m) + 1)
        axes[0].plot(levels, t, ".-", linewidth=0.5, markersize=3)
    axes[0].set(yscale="log", xlabel="level, a color for each m", ylabel="t")
    return figure


def _densities(curves: dict[str, Any]) -> Figure:
    figure, axes = _figure(1, 2, (8.0, 3.0))
    for each, end in zip(axes, ("20", "10"), strict=True):
        for side in ("EMQ", "UQE"):
            each.plot(curves["x"], curves[f"{side}, range [0, {end}]"], label=side)
        each.plot(curves["records"], np.zeros(len(curves["records"])), "|", color=INK)
        each.set_title(f"range of EMQ: [0, {end}]", fontsize="small")
    _legend(axes[0])
    return figure


def _levels(curves: dict[str, Any]) -> Figure:
    figure, axes = _figure(2, 3, (8.0, 5.0))
    for each, (name, found) in zip(axes, curves.items(), strict=False):
        each.axhline(1.0, color=INK, linewidth=0.8, label="UQE")
        for side in ("EMQ", "ind_exp, by depth"):
            ratios = np.array(found[side], float)
            each.plot(found["levels"], np.where(ratios > 0.0, ratios, np.nan), ".-", label=side)
        each.set_yscale("log", base=2)
        each.set_title(name, fontsize="small")
    axes[0].set_ylabel("error / error of UQE")
    _legend(axes[0])
    return figure


def _distances(curves: dict[str, Any], label: str) -> Figure:
    figure, axes = _figure(1, 3, (8.0, 3.0))
    for side, points in curves.items():
        if side == "x":
            continue
        for each, values in zip(axes, np.array(points).T, strict=True):
            each.plot(curves["x"][: values.size], values, ".-", label=side)
    for each, name in zip(axes, ("Kolmogorov-Smirnov", "Wasserstein", "energy"), strict=True):
        each.set(xscale="log", yscale="log", xlabel=label)
        each.set_title(name, fontsize="small")
    _legend(axes[0])
    return figure


def _counts(curves: dict[str, Any]) -> Figure:
    figure, axes = _figure(1, 1, (6.4, 3.6))
    for name, label in (
        ("true", "records"),
        ("published", "the poster's tree"),
        ("released", "cdf, binary_tree"),
    ):
        axes[0].plot(curves[name], label=label)
    axes[0].set(ylabel="records up to there")
    _legend(axes[0])
    return figure


PICTURES = {
    "joint_data": _histograms,
    "joint_missed": lambda curves: _by_m(curves, "missed points"),
    "joint_distance": lambda curves: _by_m(curves, "distance"),
    "joint_times": _times,
    "joint_smoothness": _smoothness,
    "unbounded_density": _densities,
    "unbounded_data": _histograms,
    "unbounded_levels": _levels,
    "note_data": _histograms,
    "note_naive": lambda curves: _distances(curves, "ε"),
    "note_smooth": lambda curves: _distances(curves, "ε"),
    "note_histogram": lambda curves: _distances(curves, "ε"),
    "note_adaptive": lambda curves: _distances(curves, "ε"),
    "note_widths": lambda curves: _distances(curves, "σ"),
    "note_bins": lambda curves: _distances(curves, "bins"),
    "poster_income": _counts,
    "poster_age": _counts,
}


def draw(folder: Path) -> None:
    """All pictures of the page, as the build of the documentation draws them."""
    folder.mkdir(parents=True, exist_ok=True)
    for item, picture in PICTURES.items():
        data = read(RESULTS, item)
        if data is not None and data["curves"]:
            with rc_context({"svg.hashsalt": "dpq_fast", "svg.fonttype": "path"}):
                picture(data["curves"]).savefig(folder / f"{item}.svg", metadata={"Date": None})

"""Build the tables of docs/reproduction-training.md from the kept summaries: one row per data set, model and canary."""

import json
import re
from pathlib import Path

KEPT = Path(__file__).parents[2] / "docs" / "reproduction"
PAIRS = {
    "fmnist-trials": "fmnist-linear",
    "fmnist-mlp-trials": "fmnist-mlp",
    "purchases-trials": "purchases-mlp",
    "journey-trials": "journey-mlp",
}
NOMINAL = ("2", "4", "8", "16")
RANKING = (
    r"(?P<canary>[\w-]+), ε = (?P<nominal>\d+), n = (?P<trials>[\d,]+): ε̂ of K = 16 minus ε̂ of K = 1, 2nd-order Wilson"
)
WAGER = (
    r"(?P<canary>[\w-]+), ε = (?P<nominal>\d+): models of 2nd-order Wilson, (?P<kind>\w+) candidates, over the coin wager's"
)
FACTOR = (
    r"(?P<pair>[\w-]+), (?P<canary>[\w-]+), ε = (?P<nominal>\d+), 2nd-order Wilson: times fewer .* n = (?P<trials>[\d,]+)"
)
SHARE = r"(?P<canary>[\w-]+), ε = (?P<nominal>\d+), n = (?P<trials>[\d,]+): ε̂ at K nearest √n over the best"
ACCURACY = r"(?P<canary>[\w-]+), ε = (?P<nominal>\d+): points of test accuracy .*"
BUDGET = r"(?P<records>[\d,]+) records, ε = (?P<nominal>\d+), (?P<canary>[\w-]+), K = (?P<canaries>\d+), (?P<models>\d+) models: ε̂"

CELL = r"(?P<canary>[\w-]+), ε = (?P<nominal>\d+), n = (?P<trials>[\d,]+): ε̂, (?P<method>.+)"
TIMES = (
    r"(?P<canary>[\w-]+), ε = (?P<nominal>\d+), n = (?P<trials>[\d,]+): times fewer trials than one canary, (?P<method>.+)"
)
MISSING = r"(?P<canary>[\w-]+), ε = (?P<nominal>\d+): trials finished"
GOAL = r"ε = (?P<nominal>\d+): ε̂ of 1,000 trials with K = 16, 2nd-order Wilson, at most"
NEEDED = r"ε = (?P<nominal>\d+), noise x (?P<noise>[\d.]+), K = (?P<canaries>\d+), (?P<method>.+): models for as much"


def findings_of(experiment):
    """Return the findings of a kept summary."""
    return json.loads((KEPT / experiment / "summary.json").read_text(encoding="utf-8"))["findings"]


def matching(experiment, pattern):
    """Return (the parts of its statement, finding) for each finding of this form."""
    matches = [(re.fullmatch(pattern, finding["statement"]), finding) for finding in findings_of(experiment)]
    return [(match.groupdict(), finding) for match, finding in matches if match]


def number(finding):
    """Return our number as text, in bold if it is not where it should be."""
    ours = finding["ours"]
    text = "not reached" if ours is None else f"{ours:.3g}"
    return f"**{text}**" if finding["holds"] is False else text


def table(head, rows):
    """Return the lines of a Markdown table."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return [lines[0], "|" + "---|" * len(head), *lines[1:]]


def epsilon_table(experiments, pattern, cell, *, trials=False):
    """Return a table with a row per data set, model and canary, and a column per nominal ε.

    ``cell`` makes text of the findings for a canary and an ε. ``trials`` adds a column with the number of trials.
    """
    found = {
        (experiment, part["canary"], part["nominal"]): part.get("trials", "")
        for experiment in experiments
        for part, _ in matching(experiment, pattern)
    }
    nominals = [nominal for nominal in NOMINAL if any(key[2] == nominal for key in found)]
    rows = []
    for experiment, canary in sorted({key[:2] for key in found}, key=lambda key: (list(experiments).index(key[0]), key[1])):
        cells = [
            cell(
                [
                    finding
                    for part, finding in matching(experiment, pattern)
                    if (part["canary"], part["nominal"]) == (canary, nominal)
                ]
            )
            for nominal in nominals
        ]
        count = next(n for (one, kind, _), n in found.items() if (one, kind) == (experiment, canary))
        rows.append([experiments[experiment], canary, *([count] if trials else []), *(text or "–" for text in cells)])
    head = ["data and model", "canary", *(["n"] if trials else []), *(f"ε = {nominal}" for nominal in nominals)]
    return table(head, rows)


def numbers(findings):
    """Return our numbers, one after the other."""
    return " / ".join(map(number, findings))


def two_bounds(findings):
    """Return ε̂ of 16 canaries and of one."""
    text = " / ".join(finding["note"].replace(" against ", " / ") for finding in findings)
    return f"**{text}**" if any(finding["holds"] is False for finding in findings) else text


def factor_table():
    """Return the paper's Table 1, 2nd order: our factor, and the paper's in brackets."""
    cells = {
        (
            part["pair"],
            part["canary"],
            part["nominal"],
        ): f"{number(finding).replace('not reached', '–')} ({finding['paper']:g})"
        for part, finding in matching("table-1", FACTOR)
    }
    pairs = dict.fromkeys(key[:2] for key in cells)
    rows = [[*pair, *(cells[*pair, nominal] for nominal in NOMINAL)] for pair in pairs]
    return table(["data and model", "canary", *(f"ε = {nominal}" for nominal in NOMINAL)], rows)


def budget_table():
    """Return ε̂ of the coin wager with about a hundred models."""
    rows = [[*part.values(), number(finding), finding["note"]] for part, finding in matching("fmnist-wagers", BUDGET)]
    return table(["records", "nominal ε", "canary", "K", "models", "ε̂", ""], rows)


def replace_one_table():
    """Return the cells of Table 1 by replace-one neighbours: bounds, and factors with the paper's in brackets; or "missing"."""
    orders = ("2nd-order Wilson", "4th-order Wilson")
    bounds, times = (
        {
            tuple(part[name] for name in ("canary", "nominal", "method")): (part["trials"], finding)
            for part, finding in cells
        }
        for cells in (matching(REPLACE_ONE, CELL), matching(REPLACE_ONE, TIMES))
    )
    rows = []
    for canary, nominal in dict.fromkeys(key[:2] for key in bounds):
        factors = [
            times.get((canary, nominal, order), (None, {"ours": None, "holds": None, "paper": None}))[1] for order in orders
        ]
        cells = [number(bounds[canary, nominal, method][1]) for method in ("DP + Wilson", *orders)]
        cells += [f"{number(finding).replace('not reached', '–')} ({finding['paper']})" for finding in factors]
        rows.append([canary, nominal, bounds[canary, nominal, orders[0]][0], *cells])
    rows += [[part["canary"], part["nominal"], "missing", *["–"] * 5] for part, _ in matching(REPLACE_ONE, MISSING)]
    head = ["canary", "ε", "n", "ε̂, K = 1", "ε̂, K = 16, 2nd", "4th", "factor, 2nd (paper)", "factor, 4th (paper)"]
    return table(head, sorted(rows))


def transcript_table(experiment):
    """Return how many models show by all steps what 1,000 trials can show at most."""
    goals = {part["nominal"]: finding["ours"] for part, finding in matching(experiment, GOAL)}
    rows = [
        [
            part["nominal"], part["noise"], part["canaries"], part["method"], f"{goals[part['nominal']]:.2f}",
            number(finding), finding["note"],
        ]
        for part, finding in matching(experiment, NEEDED)
    ]  # fmt: skip
    head = ["ε", "noise", "K", "evidence", "1,000 trials show at most", "models for as much", "ε̂"]
    return table(head, rows)


REPLACE_ONE = "fmnist-replace-one"
PAPER_SIZE = {"paper/fmnist-trials": "fmnist-linear"}
TABLES = {
    "ranking": epsilon_table(PAIRS, RANKING, two_bounds, trials=True),
    "wager": epsilon_table(PAIRS, WAGER, numbers),
    "factors": factor_table(),
    "paper size, ranking": epsilon_table(PAPER_SIZE, RANKING, two_bounds, trials=True),
    "paper size, wager": epsilon_table(PAPER_SIZE, WAGER, numbers),
    "number of canaries": epsilon_table({"fmnist-canaries": "fmnist-linear"}, SHARE, numbers),
    "utility": epsilon_table({"utility": "fmnist-linear"}, ACCURACY, numbers),
    "budgets": budget_table(),
    "replace-one": replace_one_table(),
    "fmnist-transcripts": transcript_table("fmnist-transcripts"),
    "cifar10-transcripts": transcript_table("cifar10-transcripts"),
}
"""The tables of the page, as lines."""

if __name__ == "__main__":  # print them, to paste them into the page
    for name, lines in TABLES.items():
        print(f"{name}:", *lines, "", sep="\n")  # noqa: T201

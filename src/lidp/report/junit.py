"""The result as JUnit XML, which most CI systems show beside the tests."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from lidp.report import wording
from lidp.report.texts import clean
from lidp.result import AuditResult, Verdict


def render_junit(result: AuditResult) -> str:
    """Return the result as JUnit XML, with one test case per part of the claim: its curve, if one was tested, and its point.

    A refuted part is a failure. A part without a verdict is skipped: nothing has been shown about it.
    """
    verdicts = result.verdicts
    counts = {
        "tests": len(verdicts),
        "failures": sum(verdict is Verdict.REFUTED for verdict in verdicts.values()),
        "errors": 0,
        "skipped": sum(verdict is Verdict.INCONCLUSIVE for verdict in verdicts.values()),
    }
    attributes = {name: str(count) for name, count in counts.items()} | {"time": f"{result.seconds:.3f}"}
    root = ET.Element("testsuites", attributes)
    suite = ET.SubElement(root, "testsuite", {"name": "lidp", **attributes})
    for part, verdict in verdicts.items():
        _add_case(suite, result, part, verdict)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _add_case(suite: ET.Element, result: AuditResult, part: str, verdict: Verdict) -> None:
    name = clean(f"{part} of the claim: {result.claim}")
    attributes = {"classname": clean(result.target), "name": name, "time": f"{result.seconds:.3f}"}
    case = ET.SubElement(suite, "testcase", attributes)
    properties = ET.SubElement(case, "properties")
    for key, value in (
        ("verdict", str(verdict)),
        ("epsilon", repr(result.bound.epsilon)),
        ("epsilon_point", repr(result.bound.epsilon_point)),
        ("failure_probability", repr(result.bound.failure_probability)),
        ("method", result.bound.method),
        *([] if result.sealed else [("seed", str(result.seed))]),  # the seed of a seal would tell its coins
    ):
        ET.SubElement(properties, "property", {"name": key, "value": clean(value)})
    message = clean(wording.headline(result))
    if verdict is Verdict.REFUTED:
        ET.SubElement(case, "failure", {"type": "refuted", "message": message}).text = clean(str(result))
    elif verdict is Verdict.INCONCLUSIVE:
        ET.SubElement(case, "skipped", {"message": message})
    else:
        ET.SubElement(case, "system-out").text = clean(str(result))

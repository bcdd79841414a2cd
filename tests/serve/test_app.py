import json
import re
import sqlite3

import pytest

from lidp import Target, result_of
from lidp.report.page import render_report
from tests.report.test_page import EVIL
from tests.sample_targets import SILENT, InterruptedAfter, Numbers, Trouble, closeness, leaky, run
from tests.serve.servers import event_stream, get, locked, serving
from tests.waiting import wait_until


def hostile(dataset, rng):
    """A mechanism with hostile errors, and a hostile name."""
    if rng.random() < 0.3:
        raise RuntimeError(EVIL)
    return leaky(dataset, rng)


hostile.__name__ = hostile.__qualname__ = EVIL


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audits")
    run(trials=60, store=folder / "leaky.db")
    run(SILENT, trials=60, store=folder / "silent.db")
    run(Target(Trouble("raises", 0.3), Numbers(), closeness), trials=40, store=folder / "trouble.db")
    run(Target(hostile, Numbers(), closeness), trials=40, store=folder / "a<b>&'\u202e\".db")
    with pytest.raises(KeyboardInterrupt):
        run(trials=60, store=folder / "half.db", executor=InterruptedAfter(20))
    with pytest.raises(KeyboardInterrupt):
        run(trials=60, store=folder / "empty.db", executor=InterruptedAfter(0))
    run(trials=3, store=folder / "damaged.db")
    connection = sqlite3.connect(folder / "damaged.db")
    with connection:
        connection.execute("UPDATE facts SET value = '[]' WHERE name = 'configuration'")
    connection.close()
    (folder / "foreign.db").write_bytes(b"SQLite format 3\0 but no store")
    return folder


@pytest.fixture(scope="module")
def server(folder):
    with serving(folder, price=2.5) as started:
        yield started


@pytest.fixture(scope="module")
def keys(server):
    return {entry.path.stem: entry.key for entry in server.audits.catalogue().entries}


def test_the_list_has_all_audits_and_says_what_it_leaves_out(server, keys):
    page = get(server, "/").text
    assert set(keys) >= {"leaky", "silent", "trouble", "half", "empty"}
    assert all(f'href="/audits/{key}"' in page for key in keys.values())
    assert "damaged.db is damaged" in page
    assert "1 other database in these folders is no store of an audit" in page
    assert "60 of 60 trials" in page
    assert ">not running<" in page


def test_an_audit_has_its_page(server, keys, folder):
    page = get(server, f"/audits/{keys['leaky']}").text
    result = result_of(folder / "leaky.db")
    assert 'class="verdict refuted"' in page
    assert f"ε is at least {result.bound.epsilon:.4g}" in page
    assert "150.00 of at most 150.00" in page
    assert page.count("<svg") == 2


def test_an_audit_without_trials_has_a_page(server, keys):
    page = get(server, f"/audits/{keys['empty']}").text
    assert "None of the 60 trials is finished yet." in page


def test_failed_trials_are_shown_with_their_reasons(server, keys):
    page = get(server, f"/audits/{keys['trouble']}").text
    assert "RuntimeError: no luck today" in page
    assert re.search(r"In \d+ trials a run failed", page)


def test_hostile_names_stay_text(server, keys):
    (name,) = [name for name in keys if name.startswith("a<b>")]
    for path in (
        "/",
        f"/audits/{keys[name]}",
        f"/audits/{keys[name]}/report",
        f"/compare?audit={keys[name]}&audit={keys['leaky']}",
    ):
        page = get(server, path).text
        assert "<script>alert" not in page
        assert "a<b>" not in page
        assert "\u202e" not in page
        assert "<img" not in page
    download = get(server, f"/audits/{keys[name]}/report.html")
    assert '"' not in download.headers["content-disposition"].partition('filename="')[2].partition('";')[0]
    assert "\n" not in download.headers["content-disposition"]


def test_a_report_is_that_of_the_command_and_its_style_is_allowed(server, keys, folder):
    answer = get(server, f"/audits/{keys['silent']}/report")
    without_links = re.sub(r"<nav.*?</nav>", "", answer.text)
    assert len(without_links.split()) == len(render_report(result_of(folder / "silent.db")).split())
    policy = answer.headers["content-security-policy"]
    assert re.search(r"style-src 'sha256-[\w+/]+='", policy)
    assert "unsafe" not in policy
    assert "script-src" not in policy


def test_reports_and_results_can_be_downloaded(server, keys, folder):
    report = get(server, f"/audits/{keys['leaky']}/report.html")
    assert report.headers["content-disposition"].startswith('attachment; filename="leaky.html"')
    answer = get(server, f"/audits/{keys['leaky']}/result.json")
    assert answer.headers["content-disposition"].startswith('attachment; filename="leaky.json"')
    assert json.loads(answer.text)["epsilon"] == result_of(folder / "leaky.db").bound.epsilon


def test_chosen_audits_are_compared(server, keys):
    page = get(server, f"/compare?audit={keys['leaky']}&audit={keys['silent']}&audit={keys['half']}")
    assert page.status == 200
    assert "3 privacy audits side by side" in page.text


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "takes 2 to 12 audits, got 0"),
        ("audit=KEY", "got 1"),
        ("audit=KEY&audit=KEY", "got 1"),
        ("audit=KEY&audit=0", "no audit"),
    ],
)
def test_a_comparison_that_is_not_possible_says_why(server, keys, query, message):
    answer = get(server, f"/compare?{query.replace('KEY', keys['leaky'])}")
    assert answer.status == 409
    assert message in answer.text


def test_what_does_not_exist_is_not_found(server):
    for path in (
        "/audits/0",
        "/audits/..%2f..%2fetc%2fpasswd",
        "/static/..%2fapp.py",
        "/static/app.py",
        "/audits/0/report",
    ):
        assert get(server, path).status == 404


def test_a_report_without_trials_says_why_there_is_none(server, keys):
    answer = get(server, f"/audits/{keys['empty']}/report")
    assert answer.status == 409
    assert "no trial is finished" in answer.text


def parts_of(response):
    """Yield the parts of each event."""
    for line in response:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


def test_events_begin_with_all_parts_and_go_on_with_changes(server, keys, folder):
    with event_stream(server, f"/audits/{keys['half']}/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = parts_of(response)
        first = next(events)
        assert set(first) == {"title", "state", "verdict", "progress", "numbers", "path", "scores", "failures"}
        assert "20 of 60 trials" in first["progress"]
        run(trials=60, store=folder / "half.db")
        changes = {}
        while "60 of 60 trials" not in changes.get("progress", ""):
            changes |= next(events)
        assert "failures" not in changes
    with event_stream(server, "/events") as response:
        assert "refuted" in next(parts_of(response))[f"outcome-{keys['leaky']}"]


def test_served_reports_and_comparisons_link_back_and_files_do_not(server, keys, folder):
    back = '<nav aria-label="Pages"><a href="/">All audits</a>'
    leaky, silent = keys["leaky"], keys["silent"]
    assert f'{back}<a href="/audits/{leaky}">Live page</a></nav>' in get(server, f"/audits/{leaky}/report").text
    assert f"{back}</nav>" in get(server, f"/compare?audit={leaky}&audit={silent}").text
    assert "<nav" not in get(server, f"/audits/{leaky}/report.html").text
    assert "<nav" not in render_report(result_of(folder / "leaky.db"))


def test_the_list_shows_the_bound_so_far_of_an_audit_that_runs(tmp_path):
    run(trials=40, store=tmp_path / "running.db", stop_when="never")
    with pytest.raises(KeyboardInterrupt):
        run(trials=60, store=tmp_path / "early.db", executor=InterruptedAfter(30), stop_when="never")
    with serving(tmp_path) as server, locked(tmp_path / "early.db"):
        listed = {entry.path.stem: entry for entry in server.audits.catalogue().entries}
        assert listed["early"].state == "running"
        (standing,) = server.audits.standings().values()
        assert standing.bound.epsilon > 0
        assert "so far" not in get(server, "/").text  # the page does not wait for it
        with event_stream(server, "/events") as response:
            parts = next(parts_of(response))
        shown = parts[f"outcome-{listed['early'].key}"]
        assert shown.strip().endswith(f"ε&nbsp;≥&nbsp;{standing.bound.epsilon:.4g} so far")
        assert "so far" not in parts[f"outcome-{listed['running'].key}"]


def test_a_running_audit_that_cannot_be_followed_does_not_spoil_the_list(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(trials=60, store=tmp_path / "early.db", executor=InterruptedAfter(30))
    with serving(tmp_path) as server, locked(tmp_path / "early.db"):
        (entry,) = server.audits.catalogue().entries
        connection = sqlite3.connect(tmp_path / "early.db")
        with connection:
            connection.execute("UPDATE scores SET data = x'00'")
        connection.close()
        assert server.audits.standings() == {}
        with event_stream(server, "/events") as response:
            assert next(parts_of(response))[f"outcome-{entry.key}"].strip() == "–"


def test_a_deleted_store_is_a_problem_and_not_the_end(server, folder):
    run(trials=5, store=folder / "gone.db")
    (key,) = wait_until(
        lambda: [entry.key for entry in server.audits.catalogue().entries if entry.path.stem == "gone"],
        "gone.db is listed",
    )
    with event_stream(server, f"/audits/{key}/events") as response:
        next(parts_of(response))
        (folder / "gone.db").unlink()
        for line in response:
            if line.startswith(b"event: problem"):
                break
        assert "there is no such store" in json.loads(response.readline()[6:])

"""The live page in a real browser, while a real audit runs in another process, is killed and resumed."""

import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.browsing import CONTRASTS, NEEDS_BROWSER, PROBLEMS, axe, open_browser, requested
from tests.report.test_page import EVIL
from tests.sample_targets import SILENT, InterruptedAfter, wait_for_more
from tests.sample_targets import run as audit
from tests.serve.servers import locked, serving
from tests.serve.test_app import folder  # noqa: F401  # a fixture
from tests.waiting import wait_until

pytestmark = NEEDS_BROWSER
TOKEN = "0123456789abcdefghij"  # noqa: S105  # of a test


@pytest.fixture(scope="module")
def browser():
    with open_browser() as started:
        yield started


@pytest.fixture(scope="module")
def audits(request):
    return request.getfixturevalue("folder")


@pytest.fixture(scope="module")
def server(audits):
    with pytest.raises(KeyboardInterrupt):
        audit(trials=60, store=audits / "running.db", executor=InterruptedAfter(20))
    with locked(audits / "running.db"), serving(audits, price=2.5) as started:
        yield started


def key_of(server, stem):
    return next(entry.key for entry in server.audits.catalogue().entries if entry.path.stem.startswith(stem))


def path_of(server, page):
    if page == "list":
        return ""
    if page in ("missing", "refused"):
        return {"missing": "audits/0", "refused": "compare?audit=0"}[page]
    if page == "report":
        return f"audits/{key_of(server, 'leaky')}/report"
    if page == "compare":
        return f"compare?audit={key_of(server, 'leaky')}&audit={key_of(server, 'half')}"
    return f"audits/{key_of(server, page)}"


def show(browser, server, path="", *, width=1200, scheme="light"):
    feature = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": feature})
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get_log("browser")
    browser.get(f"http://127.0.0.1:{server.port}/{path}")


def wait_for(browser, expression, what):
    return wait_until(lambda: browser.execute_script(f"return {expression}"), what)


def connected(browser):
    wait_for(browser, "document.body.dataset.connected === 'yes'", "the page has got its first event")


def text(browser, identity):
    return browser.execute_script("return document.getElementById(arguments[0]).textContent", identity)


@contextmanager
def running(*command):
    """Yield a process of lidp, which is killed at the end."""
    process = subprocess.Popen([sys.executable, "-m", "lidp", *map(str, command)], stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


PAGES = ["list", "leaky", "half", "empty", "trouble", "a<b>", "compare", "report", "running", "missing", "refused"]
LIVE = {"list", "leaky", "half", "empty", "trouble", "a<b>", "running"}


@pytest.mark.slow_after_first
@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 1200), ("light", 390), ("dark", 320)])
@pytest.mark.parametrize("page", PAGES)
def test_everyone_can_read_it(browser, server, page, scheme, width):
    show(browser, server, path_of(server, page), scheme=scheme, width=width)
    if page in LIVE:
        connected(browser)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert axe(browser) == ([], [])
    assert browser.execute_script(PROBLEMS) == []
    assert [one for one in browser.execute_script(CONTRASTS) if one[1] < 4.5] == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    refused = [entry["message"] for entry in browser.get_log("browser")]
    assert [
        words for words in refused if page not in ("missing", "refused") or "the server responded with" not in words
    ] == []


@pytest.fixture(scope="module")
def logging_browser():
    with open_browser(network=True) as started:
        yield started


@pytest.mark.parametrize("page", PAGES)
def test_no_request_leaves_the_machine(logging_browser, server, page):
    show(logging_browser, server, path_of(server, page))
    if page in LIVE:
        connected(logging_browser)
    addresses = [address for address in requested(logging_browser) if not address.startswith("data:")]
    assert f"http://127.0.0.1:{server.port}/{path_of(server, page)}".replace("<", "%3C") in addresses
    assert all(address.startswith(f"http://127.0.0.1:{server.port}/") for address in addresses)


def test_the_log_has_requests_that_a_policy_refuses(logging_browser, server):
    show(logging_browser, server)
    requested(logging_browser)
    logging_browser.execute_script("location.href = 'http://127.0.0.1:1/elsewhere'")
    wait_until(lambda: "http://127.0.0.1:1/elsewhere" in requested(logging_browser), "the request is in the log")


@pytest.mark.parametrize("page", ["list", "leaky", "report", "compare", "missing"])
def test_every_link_and_button_is_reached_by_keyboard_and_shows_it(browser, server, page):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    show(browser, server, path_of(server, page))
    if page in LIVE:
        connected(browser)
    wanted = browser.execute_script(
        """window.reached = new Set();
           document.addEventListener('focusin', event => {
               if (getComputedStyle(event.target).outlineStyle !== 'none') window.reached.add(event.target);
           });
           return document.querySelectorAll('a[href], button, input, summary').length"""
    )
    for _ in range(wanted + 5):
        browser.switch_to.active_element.send_keys(Keys.TAB)
    missed = "[...document.querySelectorAll('a[href], button, input, summary')].filter(one => !window.reached.has(one))"
    assert browser.execute_script(f"return {missed}.map(one => one.outerHTML)") == []
    assert browser.find_elements(By.TAG_NAME, "nav") or page == "list"


def test_hostile_text_is_shown_and_does_nothing(browser, server):
    show(browser, server, path_of(server, "a<b>"))
    connected(browser)
    assert EVIL[:25] in browser.execute_script("return document.querySelector('h1').textContent")
    assert EVIL[:25] in text(browser, "failures")
    assert browser.execute_script("return document.querySelectorAll('img, main script, header script').length") == 0
    assert browser.get_log("browser") == []


def test_a_script_that_gets_into_a_page_is_not_run(browser, server):
    show(browser, server)
    browser.execute_script(
        """const one = document.createElement('script');
           one.textContent = 'document.body.dataset.broken = 1'; document.body.append(one);
           document.body.insertAdjacentHTML('beforeend', '<p id="styled" style="color: red">x</p>')"""
    )
    assert browser.execute_script("return document.body.dataset.broken") is None
    assert browser.execute_script("return document.getElementById('styled').style.color") == ""
    assert "Content Security Policy" in str(browser.get_log("browser"))


def test_audits_are_chosen_and_compared_by_keyboard(browser, server):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    show(browser, server)
    connected(browser)
    for stem in ("leaky", "silent"):
        browser.find_element(By.ID, f"choose-{key_of(server, stem)}").send_keys(Keys.SPACE)
    browser.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    wait_for(browser, "document.title === '2 privacy audits'", "the comparison is shown")


def test_the_list_tells_of_new_audits_and_keeps_what_is_chosen(browser, server, audits):
    show(browser, server)
    connected(browser)
    box = f"choose-{key_of(server, 'leaky')}"
    browser.execute_script("document.getElementById(arguments[0]).click()", box)
    audit(SILENT, trials=3, store=audits / "new.db")
    wait_for(browser, "document.querySelector('#new-audits a') !== null", "the list offers to show new audits")
    assert browser.execute_script("return document.getElementById(arguments[0]).checked", box)
    browser.execute_script("document.querySelector('#new-audits a').click()")
    wait_for(browser, "[...document.querySelectorAll('th a')].some(a => a.textContent === 'new')", "the new audit is shown")


def test_the_token_opens_the_pages_and_leaves_the_address(browser, audits):
    with serving(audits, token=TOKEN) as guarded:
        show(browser, guarded)
        assert "with its token" in browser.page_source
        show(browser, guarded, f"?token={TOKEN}")
        connected(browser)
        assert browser.execute_script("return location.search") == ""
        browser.execute_script("document.querySelector('th a').click()")
        wait_for(browser, "location.pathname.startsWith('/audits/')", "an audit is shown")
        connected(browser)


def test_an_audit_is_followed_while_it_runs_is_killed_and_is_resumed(browser, tmp_path):
    store = tmp_path / "live.db"
    settings = ["--epsilon", "1", "--canaries", "6", "--trials", "4000", "--stop-when", "never"]
    with serving(tmp_path) as server:
        with running("audit", "tests.sample_targets:SLOW", *settings, "--store", store, "--quiet") as process:
            wait_for_more(store)
            wait_until(lambda: server.audits.catalogue().entries, "the audit is listed")
            show(browser, server, f"audits/{key_of(server, 'live')}")
            connected(browser)
            assert text(browser, "state").strip() == "running"
            first = text(browser, "progress")
            wait_for(browser, f"document.getElementById('progress').textContent !== {first!r}", "trials are counted")
            wait_for(
                browser,
                "/trials per second\\s*[\\d.]+/.test(document.getElementById('numbers').textContent)",
                "a rate is shown",
            )
            wait_for(browser, "document.title === 'refuted: slow'", "the claim is refuted on the page")
            process.send_signal(signal.SIGKILL)
            process.wait()
        wait_for(browser, "document.getElementById('state').textContent.trim() === 'not running'", "the kill is noticed")
        assert "“lidp resume” continues it" in text(browser, "verdict")
        done = text(browser, "progress")
        with running("resume", store, "--trust", "--quiet"):
            wait_for(browser, "document.getElementById('state').textContent.trim() === 'running'", "the resumed audit runs")
            wait_for(browser, f"document.getElementById('progress').textContent !== {done!r}", "trials are counted again")
        assert browser.get_log("browser") == []


def test_a_page_connects_again_to_a_server_that_was_restarted(browser, audits):
    with serving(audits) as server:
        show(browser, server, path_of(server, "leaky"))
        connected(browser)
        port = server.port
    wait_for(browser, "document.getElementById('connection').textContent !== ''", "the page says that it is not connected")
    with serving(audits, port=port):
        connected(browser)
        wait_for(browser, "document.getElementById('connection').textContent === ''", "the page takes it back")


def test_what_is_unfolded_stays_so_when_the_page_is_updated(browser, server):
    show(browser, server, path_of(server, "trouble"))
    connected(browser)
    kept = browser.execute_script(
        """const details = () => document.getElementById('last-failures');
           details().open = true; details().querySelector('summary').focus();
           fill(document.getElementById('failures'), document.getElementById('failures').innerHTML.replace(' open=""', ''));
           return [details().open, document.activeElement === details().querySelector('summary')];"""
    )
    assert kept == [True, True]

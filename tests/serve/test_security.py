import pytest

from lidp.serve.security import POLICY, is_loopback, new_token
from tests.sample_targets import run
from tests.serve.servers import get, serving

TOKEN = "0123456789abcdefghij"  # noqa: S105  # of a test


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audits")
    run(trials=3, store=folder / "a.db")
    return folder


@pytest.fixture(scope="module")
def server(folder):
    with serving(folder) as started:
        yield started


@pytest.fixture(scope="module")
def guarded(folder):
    with serving(folder, token=TOKEN) as started:
        yield started


@pytest.mark.parametrize("path", ["/", "/static/live.js", "/nothing", "/audits/0", "/compare"])
def test_every_answer_has_the_strict_headers(server, path):
    headers = get(server, path).headers
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "server" not in headers


def test_the_policy_allows_nothing_inline_and_nothing_from_elsewhere():
    assert "unsafe" not in POLICY
    assert POLICY.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
    assert "frame-ancestors 'none'" in POLICY


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:80", "LOCALHOST", "[::1]:8765", "[::1]", "192.168.0.7:1234"])
def test_own_names_are_served(server, host):
    assert get(server, "/", {"Host": host}).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "localhost.evil.example", "", "127.0.0.1.evil.example", "::"]
)
def test_foreign_names_are_refused(server, host):
    refused = get(server, "/", {"Host": host})
    assert refused.status == 421
    assert "audit" not in refused.text


def test_other_sites_may_link_here_but_load_nothing(server):
    assert get(server, "/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}).status == 200
    assert get(server, "/static/live.js", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}).status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_can_be_written(server, method):
    assert get(server, "/", method=method).status == 405


def test_without_the_token_nothing_is_shown(guarded):
    for path in ("/", "/events", "/static/live.js", f"/?token={TOKEN}x", f"/?token={TOKEN[:-1]}", "/?token="):
        refused = get(guarded, path)
        assert refused.status == 403
        assert "set-cookie" not in refused.headers
        assert "leaky" not in refused.text


def test_the_token_sets_a_cookie_that_opens_all_pages(guarded):
    answer = get(guarded, f"/?token={TOKEN}")
    assert answer.status == 200
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert TOKEN not in cookie
    session = {"Cookie": cookie.partition(";")[0]}
    assert get(guarded, "/", session).status == 200
    assert get(guarded, "/", {"Cookie": session["Cookie"] + "0"}).status == 403


def test_the_token_may_be_a_header(guarded):
    assert get(guarded, "/", {"Authorization": f"Bearer {TOKEN}"}).status == 200
    assert get(guarded, "/", {"Authorization": f"Basic {TOKEN}"}).status == 403
    assert get(guarded, "/", {"Authorization": "Bearer é"}).status == 403


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104  # a text
        ("example.org", False),
    ],
)
def test_loopback_addresses_are_known(host, loopback):
    assert is_loopback(host) is loopback


def test_tokens_are_long_and_different():
    assert len({new_token() for _ in range(10)}) == 10
    assert len(new_token()) >= 32

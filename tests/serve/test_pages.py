import pytest

from lidp.serve.pages import duration, report_policy


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0 s"),
        (0.0153, "0.015 s"),
        (59.4, "59 s"),
        (60, "1 min 0 s"),
        (3599.7, "1 h 0 min"),
        (7260, "2 h 1 min"),
        (200_000, "2 d 7 h"),
    ],
)
def test_durations_have_two_units_at_most(seconds, words):
    assert duration(seconds) == words


def test_the_policy_of_a_report_names_its_style_and_nothing_else():
    policy = report_policy("<style>a</style>")
    # printf a | openssl dgst -sha256 -binary | base64
    assert "style-src 'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='" in policy
    assert policy != report_policy("<style>b</style>")

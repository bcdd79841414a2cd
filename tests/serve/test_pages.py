from lidp.serve.pages import report_policy


def test_the_policy_of_a_report_names_its_style_and_nothing_else():
    policy = report_policy("<style>a</style>")
    # printf a | openssl dgst -sha256 -binary | base64
    assert "style-src 'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='" in policy
    assert policy != report_policy("<style>b</style>")

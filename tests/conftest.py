"""What all tests share."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_user_data(tmp_path_factory):
    """Keep the key that marks one's own stores out of the home folder of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("user-data")))
        yield

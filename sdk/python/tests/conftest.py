"""The real brigd, which the tests that need it must find."""

import os
from pathlib import Path

import pytest

import brig

PACKAGE = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def brigd() -> str:
    """Path of brigd, with brig-worker beside it. Tests fail, and are never skipped, without."""
    path = os.environ.get("BRIGD")
    if not path:
        pytest.fail("BRIGD must name the brigd to test against: build it with cargo, or run tests/sdk-python")
    worker = os.environ.get("BRIG_WORKER") or str(Path(path).parent / "brig-worker")
    for binary in (path, worker):
        if not os.access(binary, os.X_OK):
            pytest.fail(f"{binary} is not an executable file")
    return path


@pytest.fixture
def private(brigd: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Without a socket in the environment: a private brigd of this process."""
    monkeypatch.delenv("BRIG_SOCKET", raising=False)
    return brigd


@pytest.fixture(scope="session", autouse=True)
def _end_what_is_shared():
    yield
    brig.shutdown()

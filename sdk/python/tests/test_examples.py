"""The examples, and every Python block of the README, print what they say."""

import os
import re
import subprocess
import sys

import pytest
from conftest import PACKAGE

README = (PACKAGE / "README.md").read_text()


def run(arguments: list[str], brigd: str) -> str:
    env = {**os.environ, "BRIG_SOCKET": "", "BRIGD": brigd}
    done = subprocess.run([sys.executable, "-W", "error", *arguments], env=env, capture_output=True, text=True, timeout=120, cwd=PACKAGE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_of_host_functions_prints_the_customers_total(brigd: str) -> None:
    assert run(["examples/host_functions.py"], brigd) == "42\n"


def test_the_example_of_code_mode_refunds_what_is_pending(brigd: str) -> None:
    assert run(["examples/code_mode.py"], brigd) == '{"refunded": 1, "total": 2}\n'


BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_readme_has_examples() -> None:
    assert len(BLOCKS) >= 5


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_of_the_readme_prints_what_it_says(block: str, brigd: str) -> None:
    said = "".join(f"{line}\n" for line in re.findall(r"# prints (.*)$", block, re.MULTILINE))
    assert run(["-c", block], brigd) == said

"""What is published, and that it works where nothing else is."""

import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

from conftest import PACKAGE

import brig


def test_the_wheel_has_the_modules_types_and_licence_and_runs_where_it_is_installed_alone(tmp_path: Path, brigd: str) -> None:
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(tmp_path), str(PACKAGE)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [metadata] = [archive.read(name).decode() for name in names if name.endswith("METADATA")]
    assert {"brig/__init__.py", "brig/py.typed", "brig/adapters/langchain.py"} <= set(names)
    assert all(re.fullmatch(r"brig/([a-z_]+/)?([a-z_]+\.py|py\.typed)|brig-[\d.]+\.dist-info/.+", name) for name in names), names
    assert any(name.endswith("LICENSE") for name in names)
    # No dependency but those of the extras.
    assert all("extra ==" in line for line in metadata.splitlines() if line.startswith("Requires-Dist"))

    venv.create(tmp_path / "clean", with_pip=True)
    python = str(tmp_path / "clean/bin/python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", str(wheel)], check=True)
    program = """
import dataclasses, sys, brig
@dataclasses.dataclass
class Given:
    a: int
def f(given: Given) -> int:
    return given.a + 1
print(brig.evaluate("return await t.f({a: 1})", host_functions={"t": {"f": f}}).value, "pydantic" in sys.modules)
"""
    env = {**os.environ, "BRIG_SOCKET": "", "BRIGD": brigd, "PYTHONPATH": ""}
    ran = subprocess.run([python, "-I", "-c", program], env=env, capture_output=True, text=True)
    assert ran.stdout == "2 False\n", ran.stderr


def test_the_version_that_is_told_to_brigd_is_the_packages() -> None:
    [version] = re.findall(r'^version = "(.*)"$', (PACKAGE / "pyproject.toml").read_text(), re.MULTILINE)
    assert brig.__version__ == version


def test_the_types_are_strict() -> None:
    done = subprocess.run([sys.executable, "-m", "mypy"], cwd=PACKAGE, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_parts_that_need_no_framework_import_none() -> None:
    program = "import sys, brig; print([name for name in ('pydantic', 'langchain_core', 'pydantic_ai', 'typing_extensions') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

"""Generators of five languages make a client of the schema that compiles, or whose types hold: in `make test-long`.

Python is `test_generated_client.py`, whose client makes a journey too. The generators come from their own registries.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import api_contract

pytestmark = pytest.mark.skipif("not config.getoption('long')", reason="generators of clients run with --long")
FILES = Path(__file__).with_name("generators")
OAPI_CODEGEN = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
OGEN = "github.com/ogen-go/ogen/cmd/ogen@v1.24.0"
MAVEN = ("mvn", "--quiet", "--batch-mode", "--no-transfer-progress")


def folder_with(tools: tuple[str, ...], language: str, folder: Path) -> Path:
    """Return the folder with the schema and the files of the language. Skips the test without its tools."""
    if missing := [tool for tool in tools if shutil.which(tool) is None]:
        pytest.skip(f"{' and '.join(missing)} not found on this machine: no client in {language} is generated")
    if (FILES / language).exists():
        shutil.copytree(FILES / language, folder, dirs_exist_ok=True)
    (folder / "schema.json").write_text(json.dumps(api_contract.document()), encoding="utf-8")
    return folder


def run(folder: Path, *words: str) -> str:
    """Run a program in the folder and return what it prints; fail with that if the program fails."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, env={**os.environ, "GOFLAGS": "-mod=mod"})
    assert done.returncode == 0, f"{' '.join(words)}:\n{done.stdout[-5000:]}{done.stderr[-5000:]}"
    return done.stdout + done.stderr


def test_typescript_of_openapi_typescript(tmp_path):
    folder = folder_with(("npm", "npx"), "typescript", tmp_path)
    run(folder, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund")
    flags = ("--default-non-nullable=false",)  # else what has a default is required in requests
    run(folder, "npx", "openapi-typescript", "schema.json", "--output", "schema.d.ts", *flags)
    strict = ("--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--moduleResolution", "bundler")
    run(folder, "npx", "tsc", *strict, "client.ts")


def test_go_of_oapi_codegen(tmp_path):
    folder = folder_with(("go",), "go", tmp_path)
    run(folder, "go", "mod", "init", "client.example/portal")
    run(folder, "go", "run", OAPI_CODEGEN, "-package=portal", "-generate=types,client", "-o=client.go", "schema.json")
    run(folder, "go", "mod", "tidy")
    run(folder, "go", "build", "./...")


def test_go_of_ogen_which_skips_no_operation(tmp_path):
    folder = folder_with(("go",), "go", tmp_path)
    run(folder, "go", "mod", "init", "client.example/portal")
    printed = run(folder, "go", "run", OGEN, "--target=.", "--package=portal", "schema.json")
    assert "Skipping operation" not in printed
    run(folder, "go", "mod", "tidy")
    run(folder, "go", "build", "./...")


def test_java_of_openapi_generator(tmp_path):
    folder = folder_with(("java", "mvn"), "java", tmp_path)
    run(folder, *MAVEN, "compile")


def test_rust_of_openapi_generator(tmp_path):
    folder = folder_with(("java", "mvn", "cargo"), "rust", tmp_path)
    run(folder, *MAVEN, "generate-sources")
    run(folder / "client", "cargo", "check", "--quiet", "--no-default-features")  # without TLS, which needs OpenSSL

"""Memory: kept for the next step."""

import platform
import subprocess
import sys

import pytest

from workbench.training import memory

# Ten steps that need 64 MB (15 625 pages); counts the pages that the system makes for
# them, after the steps in which the C library finds a place.
PROGRAM = """
import resource, sys
import torch
from workbench.training.memory import keep_memory

def step():
    torch.zeros(16_000_000).add_(1)

if sys.argv[1] == "keep":
    assert keep_memory()
for _ in range(20):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_memory_is_kept_for_the_next_step() -> None:
    pages = {
        kind: int(subprocess.check_output([sys.executable, "-c", PROGRAM, kind]))
        for kind in ("keep", "give back")
    }
    assert pages["keep"] < 1_000
    assert pages["give back"] > 100_000


def test_where_there_is_no_such_setting_nothing_is_done(monkeypatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert memory.keep_memory() is False

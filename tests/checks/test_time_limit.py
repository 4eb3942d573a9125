"""What never returns is ended, with alarms and without them."""

import contextlib
import signal
import threading

import pytest

from autograder.time_limit import TookTooLong, can_end, limited_time


@pytest.fixture(params=["alarms", "a thread"], autouse=True)
def system(request, monkeypatch) -> None:
    """On a system that has alarms, and on one that has none, such as Windows."""
    if request.param == "a thread":
        monkeypatch.delattr(signal, "setitimer")
    return request.param


def never_return() -> None:
    while True:
        with contextlib.suppress(Exception):
            sum(range(10))


def test_the_limit_is_said_and_the_place_is_known() -> None:
    says = pytest.raises(TookTooLong, match=r"after 0\.05 seconds")
    with says as caught, limited_time(0.05):
        never_return()
    assert "never_return" in [each.name for each in caught.traceback]


@pytest.mark.parametrize("seconds", [(0.05, 60), (60, 0.05)])
def test_of_two_limits_the_shorter_one_holds(seconds) -> None:
    outer, inner = seconds
    with pytest.raises(TookTooLong), limited_time(outer), limited_time(inner):
        never_return()


def test_the_outer_limit_holds_on_when_the_inner_one_has_ended() -> None:
    with pytest.raises(TookTooLong, match=r"after 0\.1 seconds"), limited_time(0.1):
        with limited_time(0):
            pass
        with contextlib.suppress(TookTooLong), limited_time(0.01):
            never_return()
        never_return()


def test_what_ends_in_time_is_left_alone() -> None:
    for _ in range(300):
        with contextlib.suppress(TookTooLong), limited_time(0.0005):
            sum(range(3000))
    for _ in range(1000):
        sum(range(100))  # nothing comes late


def test_in_another_thread_nothing_is_promised() -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(can_end()))
    thread.start()
    thread.join(30)
    assert found == [False] and can_end()

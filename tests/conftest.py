"""What every test shares: the path to solutions/, and no silent skip in CI."""

import os
import re
import sys
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).resolve().parents[1]
IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}

sys.path.insert(0, str(ROOT / "solutions"))
os.environ["COURSE_LOOK"] = "0"  # the search for a line costs seconds at each failure
os.environ.pop("JPY_SESSION_NAME", None)  # no test's notebook is open in JupyterLab


# Files whose tests share nothing that is costly to make: any worker may take any test
SPREAD = {
    "test_attacks",
    "test_faults",
    "test_interface",
    "test_notebooks",
}

# Files whose tests hand in answers. All to one chapter are checked by one worker: its
# notebook is run once, and what known mistakes give for a check's inputs is remembered.
BY_CHAPTER = {
    "test_bad_answers",
    "test_mistakes",
    "test_seeds",
    "test_strangers",
    "test_whole_chapters",
}
OF_CHAPTER = re.compile(r"\[(\d\d) ")


class ByFile(LoadScopeScheduling):
    """Keep the tests of a file, or of a chapter, together on one worker.

    The tests of the files of SPREAD go to any worker, one by one.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::")[0]
        stem = Path(file).stem
        if stem in BY_CHAPTER and (found := OF_CHAPTER.search(nodeid)):
            return f"chapter {found[1]}"
        return nodeid if stem in SPREAD else file


# The files that take longest begin; then come all others, the chapters, and last what
# goes to any worker in small pieces: so no worker is left alone with a long file.
FIRST = (
    "test_examine",
    "test_dist",
    "test_own_merit",
    "test_grading",
    "test_plan",
    "test_results",
    "test_lines",
    "test_boundary",
    "test_usage",
    "test_time",
    "test_notebooks",
    "test_resume",
    "test_cluster",
    "test_site",
    "test_training",
)


def pytest_collection_modifyitems(items):
    """Put the tests into this order; a file keeps its own."""
    others = len(FIRST)
    order = dict.fromkeys(SPREAD, others + 2) | dict.fromkeys(BY_CHAPTER, others + 1)
    order |= {name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: order.get(item.path.stem, others))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    config.option.loadscopereorder = False  # it would put single tests last
    return ByFile(config, log)


@pytest.fixture(scope="module")
def driver():
    """What drives the browsers of a file: there can be one at a time."""
    from tests import browsers

    with browsers.driver() as found:
        yield found


@pytest.fixture(scope="module")
def browser(driver):
    """One headless Chromium for all tests of a file."""
    from tests import browsers

    with browsers.chromium(driver) as chromium:
        yield chromium


@pytest.fixture(scope="module")
def address():
    """The built site on a server of this machine: a disk gives no downloads."""
    from tools.browser import served

    with served(ROOT / "_build" / "html") as place:
        yield place


@pytest.fixture(scope="module")
def firefox(driver):
    """One headless Firefox for all tests of a file that run in both browsers."""
    from tests import browsers

    with browsers.firefox(driver) as found:
        yield found


@pytest.fixture
def visit(browser):
    """Make visitors in Chromium."""
    from tests import browsers

    with browsers.visits(browser) as make:
        yield make


@pytest.fixture(params=["chromium", "firefox"])
def visit_both(request):
    """Make visitors in one browser, then in the other."""
    from tests import browsers

    name = {"chromium": "browser"}.get(request.param, request.param)
    with browsers.visits(request.getfixturevalue(name)) as make:
        yield make


@pytest.fixture(scope="module")
def figure(tmp_path_factory, browser):
    """Open a moving figure alone on a page, from a disk, without a network."""
    from tests import figures

    with figures.opened(browser, tmp_path_factory.mktemp("figures")) as open_figure:
        yield open_figure


@pytest.fixture(params=["chromium", "firefox"])
def figure_both(request, tmp_path):
    """Open a moving figure in one browser, then in the other."""
    from tests import figures

    if request.param == "chromium":
        yield request.getfixturevalue("figure")
        return
    with figures.opened(request.getfixturevalue("firefox"), tmp_path) as open_figure:
        yield open_figure


def _fail_if_skipped(report):
    """Turn a skip into a failure in CI, where nothing may be missing."""
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[-1] if report.longrepr else "no reason given"
        report.outcome = "failed"
        report.longrepr = f"A skip is a failure in CI: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return _fail_if_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return _fail_if_skipped((yield))


class SaidAtOnce:
    """Names what has failed when it fails: a run may be stopped before its end."""

    def __init__(self, config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report):
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if report.failed and reporter:
            reporter.write_line(f"\nFAILED {report.nodeid}")


def pytest_configure(config):
    if not hasattr(config, "workerinput"):  # workers report to the one that shows it
        config.pluginmanager.register(SaidAtOnce(config))


def pytest_terminal_summary(terminalreporter):
    """Close with the size of the bank of mistakes, where its tests have run."""
    reports = terminalreporter.stats.get("passed", [])
    if any("test_mistakes.py" in report.nodeid for report in reports):
        from tests.chapters import count_bank

        terminalreporter.write_line(count_bank())

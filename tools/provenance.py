"""Where a measurement comes from: what a recorded figure must be able to say."""

import datetime
import os
import platform

from workbench.training import records


def made_by(command: str) -> dict[str, object]:
    """Describe a measurement before it begins, as the load is that of others then.

    Returns:
        The command, the date, the commit (with "+" if files differ from it), the
        hardware, Python's version, and how many processes want a core.
    """
    return {
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": records.commit(),
        "hardware": f"{records.processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }
